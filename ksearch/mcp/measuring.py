"""The programs of a run measured on this machine, in a thread of its own: an agent may wait for it, or come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ksearch.drivers import Evaluator, Measured
from ksearch.errors import KSearchError
from ksearch.mcp.house import House
from ksearch.protocol import Kind, Lost
from ksearch.run import Run
from ksearch.service.beginning import setting
from ksearch.service.carrying import carry
from ksearch.state import State
from ksearch.types import Program

ONLY_MEASURING = frozenset({Kind.EVALUATE})


class _Ended(Exception):
    """The server ends."""


@dataclass(frozen=True)
class _Noting:
    """An evaluator whose work can be watched."""

    inner: Evaluator
    measurer: Measurer

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        self.measurer.at = f"measuring program {program.id[:12]}"
        try:
            return self.inner.evaluate(program, against)
        finally:
            self.measurer.at = "looking for more to measure"


class Measurer:
    """Measures what waits in one run, until nothing does."""

    def __init__(self, house: House, run_id: str) -> None:
        self._house, self._run_id = house, run_id
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.at = ""
        self.failure: KSearchError | None = None

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, unless it is at it already."""
        with self._lock:
            if self.busy or self._house.closing.is_set():
                return
            self.failure, self.at = None, "starting the evaluator"
            # Ends with the process: what it had taken is found to be nobody's, and taken by the next.
            self._thread = threading.Thread(target=self._work, name=f"measuring {self._run_id}", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            run = Run(self._house.store, self._run_id)
            at = setting(run.state)
            with self._house.staffing.staff(at) as staff:
                self.at = "looking for what to measure, or waiting for another who measures"
                desk = staff.desk(run, at)
                carry(run, replace(desk, evaluator=_Noting(desk.evaluator, self)), ONLY_MEASURING, self._sleep)
        except KSearchError as error:
            self.failure = error
        except _Ended:
            return

    def _sleep(self, seconds: float) -> None:
        if self._house.closing.is_set():
            raise _Ended
        time.sleep(seconds)


class Measurers:
    """One for each run."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lock = threading.Lock()
        self._found: dict[str, Measurer] = {}

    def of(self, run_id: str) -> Measurer:
        with self._lock:
            return self._found.setdefault(run_id, Measurer(self._house, run_id))


def unmeasured(state: State) -> list[str]:
    """Programs that wait to be measured, or are being measured."""
    return [a.program_id for c in state.cycles.values() for a in c.unresolved if a.program_id]
