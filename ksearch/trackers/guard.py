"""The boundary around a tracker: whatever it does, the search goes on as if it were not there.

It works in a thread of its own behind a bounded queue, so that a slow network costs the search nothing. What is
lost that way is not lost for good: `ksearch track` tells of a run again, from its events.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from ksearch.trackers.base import Fact, Tracker

MAX_QUEUE = 10_000
MAX_FAILURES = 5  # in a row; then it is left alone
CLOSE_S = 15.0  # longest wait for it at the end


class Guarded:
    """A tracker that cannot fail. `make` opens it, in the thread: that may fail, or hang, too.

    Args:
        say: told once of each kind of trouble, in one line.
        patient: nothing waits for us, so a full queue is waited for, not dropped into.
    """

    def __init__(
        self, name: str, make: Callable[[], Tracker], say: Callable[[str], None], *, patient: bool = False
    ) -> None:
        self.name = name
        self.dropped = 0
        self.failures = 0
        self.given_up = False
        self._say = say
        self._patient = patient
        self._said: set[str] = set()
        self._in_a_row = 0
        self._queue: queue.Queue[Fact | None] = queue.Queue(MAX_QUEUE)
        self._thread = threading.Thread(target=self._work, args=(make,), name=f"tracker {name}", daemon=True)
        self._thread.start()

    def take(self, fact: Fact) -> None:
        """Never raises; never blocks unless it is patient."""
        try:
            self._queue.put(fact, self._patient, CLOSE_S if self._patient else None)
        except queue.Full:
            self.dropped += 1

    def close(self, wait_s: float | None = None) -> bool:
        """Wait for it to send what is left, not for ever. False: something was not told."""
        wait_s = CLOSE_S if wait_s is None else wait_s
        end = time.monotonic() + wait_s
        try:
            self._queue.put(None, timeout=wait_s)
        except queue.Full:
            self.dropped += 1
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            self._warn("late", f"it has not finished within {wait_s:g} s and is left behind")
        elif self.dropped:
            self._warn("dropped", f"{self.dropped} things came faster than it took them")
        return not (self._thread.is_alive() or self.dropped or self.failures)

    def _work(self, make: Callable[[], Tracker]) -> None:
        tracker: Tracker | None = None

        def opened() -> None:
            nonlocal tracker
            tracker = make()

        self._try(opened, "cannot be started")
        if tracker is None:
            self.given_up = True
        found: Tracker | None = tracker
        while (fact := self._queue.get()) is not None:
            if found is not None and not self.given_up:
                self._tell(found, fact)
        if found is not None:
            self._try(found.close, "could not be closed")

    def _tell(self, tracker: Tracker, fact: Fact) -> None:
        before = self.failures
        self._try(lambda: tracker.take(fact), "did not take something")
        if self.failures == before:
            self._in_a_row = 0
            return
        self._in_a_row += 1
        if self._in_a_row >= MAX_FAILURES:
            self.given_up = True
            self._warn("given up", f"it failed {MAX_FAILURES} times in a row and is told nothing more")

    def _try(self, act: Callable[[], object], what: str) -> None:
        try:
            act()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the boundary: a library that gives up must not end us
            self.failures += 1
            self._warn(what, f"it {what}: {type(error).__name__}: {str(error)[:300]}")

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._say(f"tracker {self.name}: {text}. The run is not touched; later: ksearch track RUN --to {self.name}")
