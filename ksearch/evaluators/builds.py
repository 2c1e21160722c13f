"""What was built, shared by the evaluators of one host: each program is compiled once, wherever it is timed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

from ksearch.evaluators.builder import BuildFailed, Built

KEPT = 64  # programs: those at work, and those timed beside them


class Builds:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Future[Built | BuildFailed]] = OrderedDict()

    def built(self, program_id: str, build: Callable[[], Built]) -> Built:
        """What `build` made of this program: now, before, or in another thread that is at it.

        Raises:
            BuildFailed: it does not build, now or then. What else `build` raises is not kept.
        """
        with self._lock:
            found, mine = self._found.get(program_id), Future[Built | BuildFailed]()
            if found is None:
                self._found[program_id] = mine
                while len(self._found) > KEPT:
                    self._found.popitem(last=False)
            else:
                self._found.move_to_end(program_id)
        outcome = self._make(program_id, build, mine) if found is None else found.result()
        if isinstance(outcome, BuildFailed):
            raise outcome
        return outcome

    def _make(
        self, program_id: str, build: Callable[[], Built], mine: Future[Built | BuildFailed]
    ) -> Built | BuildFailed:
        outcome: Built | BuildFailed
        try:
            outcome = build()
        except BuildFailed as failure:
            outcome = failure
        except BaseException as error:
            with self._lock:
                self._found.pop(program_id, None)
            mine.set_exception(error)
            raise
        mine.set_result(outcome)
        return outcome
