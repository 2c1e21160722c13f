"""Several devices of one host as one evaluator: whoever is free takes the next program that is built.

A device that loses a program which another one then measures has failed: the second time in a row it is put aside,
with its reason. What every device loses is the program's or the host's doing, and no device is blamed for it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, Self, TypeVar

from ksearch.errors import EvaluatorError
from ksearch.types import Program

STRIKES = 2
Found = TypeVar("Found", covariant=True)
Result = TypeVar("Result")


class Member(Protocol[Found]):
    """One device. `evaluate` is called for one program at a time; `build` from several threads."""

    @property
    def label(self) -> str:
        """Which one: "GPU 3 (NVIDIA H200)"."""

    @property
    def model(self) -> str:
        """Known once it is open."""

    def open(self) -> None: ...
    def close(self) -> None: ...

    def build(self, program: Program) -> None:
        """Compile ahead, without the device. That it fails shows when it is evaluated."""

    def evaluate(self, program: Program, against: Sequence[Program]) -> Found: ...


class Fleet(Generic[Result]):
    """Use it as a context manager; `evaluate` is safe from several threads.

    Args:
        lost: why a result is none, because the device or its processes failed; None for a result.
        tell: is told in a sentence when a device is put aside.

    Raises:
        EvaluatorError: when entered, if no device works, or they are of different models.
    """

    def __init__(
        self,
        members: Sequence[Member[Result]],
        lost: Callable[[Result], str | None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.members, self.lost, self.tell = list(members), lost, tell
        self.aside: dict[str, str] = {}  # why, by label
        self._strikes = dict.fromkeys((m.label for m in members), 0)
        self._free: list[Member[Result]] = []
        self._changed = threading.Condition()
        self._turn = itertools.count()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Open all devices side by side. Those that do not open are put aside, as long as one does."""
        with ThreadPoolExecutor(len(self.members)) as pool:
            failures = list(pool.map(_opened, self.members))
        for member, why in zip(self.members, failures, strict=True):
            if why:
                self._put_aside(member, why)
        if not self.working:
            self.close()
            raise EvaluatorError("no device works: " + "; ".join(f"{k}: {why}" for k, why in self.aside.items()))
        try:
            one_model((m.label, m.model) for m in self.working)
        except EvaluatorError:
            self.close()
            raise
        self._free = list(self.working)

    def close(self) -> None:
        for member in self.members:
            member.close()

    @property
    def working(self) -> list[Member[Result]]:
        return [m for m in self.members if m.label not in self.aside]

    def evaluate(self, program: Program, against: Sequence[Program] = ()) -> Result:
        """Build on any device's cores, then measure on the first device that is free."""
        working = self.working
        working[next(self._turn) % len(working)].build(program)
        lost: dict[str, str] = {}  # why, by the label of the device that lost it
        found: Result | None = None
        while (member := self._take(lost)) is not None:
            try:
                found = member.evaluate(program, against)
            finally:
                self._give_back(member)
            why = self.lost(found)
            if why is None:
                self._blame(lost, member)
                return found
            lost[member.label] = why
        assert found is not None, "one device is always at work"
        return found

    def _take(self, lost: Mapping[str, str]) -> Member[Result] | None:
        """The first that is free and has not lost this program; None where all have."""
        with self._changed:
            while True:
                for member in self._free:
                    if member.label not in lost:
                        self._free.remove(member)
                        return member
                if all(m.label in lost for m in self.working):
                    return None
                self._changed.wait()

    def _give_back(self, member: Member[Result]) -> None:
        with self._changed:
            if member.label not in self.aside:
                self._free.append(member)
            self._changed.notify_all()

    def _blame(self, lost: Mapping[str, str], sound: Member[Result]) -> None:
        """`sound` measured what others have lost: it is they who fail."""
        with self._changed:
            self._strikes[sound.label] = 0
            for label, why in lost.items():
                self._strikes[label] += 1
                if self._strikes[label] >= STRIKES and label not in self.aside:
                    self._put_aside(next(m for m in self.members if m.label == label), why)
            self._changed.notify_all()

    def _put_aside(self, member: Member[Result], why: str) -> None:
        self.aside[member.label] = why
        if member in self._free:
            self._free.remove(member)
        self.tell(f"{member.label} is put aside, its work goes to the others: {why}")


def _opened(member: Member[Result]) -> str | None:
    """Open it, or say why not."""
    try:
        member.open()
    except EvaluatorError as error:
        return str(error)
    return None


def one_model(devices: Iterable[tuple[str, str]]) -> str:
    """The model that all devices share, given as (which, model).

    Raises:
        EvaluatorError: they are of different models.
    """
    by_model: dict[str, list[str]] = {}
    for label, model in devices:
        by_model.setdefault(model, []).append(label)
    if len(by_model) > 1:
        found = "; ".join(f"{model}: {', '.join(labels)}" for model, labels in by_model.items())
        raise EvaluatorError(
            f"times of different models of GPU are never compared, and here are {found}. Name GPUs of one model: "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1 ksearch ..."
        )
    return next(iter(by_model))
