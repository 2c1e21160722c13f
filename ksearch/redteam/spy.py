"""The spy: a program that prints everything it can see, and the search for what it must not have seen.

Its task's expected values are marks, and so are its inputs. Judging is switched off, so that a program that computes
nothing comes through every stage; the fences around it stay up.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ksearch.errors import EvaluatorError
from ksearch.evaluators.builder import Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.subject import Subject
from ksearch.protocol import Lost
from ksearch.redteam.cheat import CHEATS
from ksearch.redteam.spec import base
from ksearch.types import Program

FOLDER = Path(__file__).parent / "spy_task"
END = b"\n== end of dump\n"
UNJUDGED = frozenset(
    {Defence.ELEMENTWISE, Defence.NORM, Defence.NON_FINITE, Defence.SECOND_POISON, Defence.OUTSIDE_CLOCK,
     Defence.LATE_WRITE}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpyReport:
    """`found`: secrets that were in the dump, in words; must be empty. The rest shows that the search was real."""

    found: tuple[str, ...]
    dumps: int  # complete ones
    dump_bytes: int
    seeds: int  # that were looked for
    inputs_seen: bool  # what the spy was given, and so must be in a dump of its memory
    sandbox: str
    stage: str


@dataclass(slots=True)
class _Tapped(Subject):
    """What its process prints goes into a file, however much it is."""

    tap: Path = Path()
    copier: threading.Thread | None = None

    def start(self) -> None:
        Subject.start(self)
        source, self.process.output = self.process.output, _nothing()
        self.process.poll.unregister(source)
        os.set_blocking(source, True)
        self.copier = threading.Thread(target=_copy, args=(source, self.tap / self.key))
        self.copier.start()


def _nothing() -> int:
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.close(write)
    return read


def _copy(source: int, path: Path) -> None:
    with os.fdopen(source, "rb") as pipe, path.open("wb") as file:
        while data := pipe.read1(1 << 20):
            file.write(data)


class _Evaluator(LocalEvaluator):
    """Taps every program but the baseline."""

    def __init__(self, tap: Path, options: EvaluatorOptions) -> None:
        baseline = Program({"baseline.cpp": (FOLDER / "baseline.cpp").read_text("utf-8")}, "baseline.cpp::run", "cpp")
        limits = replace(base().limits, smoke_s=30.0, check_s=60.0, time_s=60.0, memory_bytes=512 << 20)
        spec = replace(base(), name="spy", baseline=baseline, precision="tolerance", limits=limits)
        super().__init__(spec, FOLDER, options=options)
        self.tap = tap
        self.tapped: list[_Tapped] = []

    def subject(self, program: Program, built: Built, prefix: str) -> Subject:
        if program.id == self.spec.baseline.id:
            return super().subject(program, built, prefix)
        plain = super().subject(program, built, prefix)
        found = _Tapped(plain.bench, program, built, plain.key, tap=self.tap)
        self.tapped.append(found)
        return found


def spy(sandbox: str = "auto", disabled: frozenset[Defence] = frozenset()) -> SpyReport:
    """Let the spy run through every stage, and search what it printed.

    Args:
        sandbox: rung of the sandbox ladder, as in `EvaluatorOptions`.
        disabled: defences that are off beside those that judge.

    Raises:
        EvaluatorError: the spy did not come through, so nothing was proved.
    """
    with tempfile.TemporaryDirectory(prefix="ksearch-spy-") as folder:
        Path(folder, "dumps").mkdir()
        options = EvaluatorOptions(
            time_budget_s=0.2, min_rounds=4, max_rounds=8, confirm_budget_s=0.1, outside_batch_ms=20.0,
            sandbox=sandbox, cache=Path(folder, "cache"), disabled=UNJUDGED | disabled, testing=True,
        )  # fmt: skip
        program = Program({"spy.py": (CHEATS / "spy.py").read_text("utf-8")}, "spy.py::run", "python")
        evaluator = _Evaluator(Path(folder, "dumps"), options)
        with evaluator:
            measured = evaluator.evaluate(program)
        for subject in evaluator.tapped:
            if subject.copier is not None:
                subject.copier.join(10)
        if isinstance(measured.evaluation, Lost):
            raise EvaluatorError(f"the spy was lost: {measured.evaluation.reason}")
        return _search([p.read_bytes() for p in Path(folder, "dumps").iterdir()], measured.record)


def _search(dumps: list[bytes], record: dict[str, Any]) -> SpyReport:
    scope: dict[str, Any] = {}
    exec(compile((FOLDER / "reference.py").read_text("utf-8"), "reference.py", "exec"), scope)  # noqa: S102
    seeds = sorted(_hex_numbers(record.get("seeds")))
    secrets = {f"expected values as {t}": np.array(scope["EXPECTED"], t).tobytes() for t in ("float64", "float32")}
    for seed in seeds:
        number = int(seed, 16)
        secrets |= {
            f"seed {seed} as text": seed.encode(), f"seed {seed}, little-endian": number.to_bytes(16, "little"),
            f"seed {seed}, big-endian": number.to_bytes(16, "big"), f"seed {seed}, decimal": str(number).encode(),
        }  # fmt: skip
    found = tuple(name for name, secret in secrets.items() if any(secret in dump for dump in dumps))
    given = np.array(scope["GIVEN"], np.float32).tobytes()
    return SpyReport(
        found, sum(dump.endswith(END) for dump in dumps), sum(map(len, dumps)), len(seeds),
        all(given in dump for dump in dumps if dump.endswith(END)), record["sandbox"]["level"],
        record["evaluation"]["stage"],
    )  # fmt: skip


def _hex_numbers(value: object) -> Iterator[str]:
    """Every seed in a record, however it is nested."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _hex_numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _hex_numbers(inner)
    elif isinstance(value, str) and len(value) == 32:
        yield value
