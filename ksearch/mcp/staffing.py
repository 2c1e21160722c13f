"""Evaluators of this machine, opened when they are wanted, shared by runs of one task, closed when nobody uses them.

A server lives as long as its agent's session: an idle evaluator would hold a GPU's memory for hours.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from ksearch.service.beginning import Setting
from ksearch.service.desks import FAKE, Staff, staffed

IDLE_S = 300.0
LOOK_S = 5.0


@dataclass
class _Open:
    staff: Staff
    stack: ExitStack
    users: int = 0
    since: float = field(default_factory=time.monotonic)  # idle


class Staffing:
    """Safe from several threads."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = threading.RLock()
        self._open: dict[str, _Open] = {}
        self._ended = threading.Event()
        self._watch: threading.Thread | None = None

    @contextmanager
    def staff(self, at: Setting) -> Iterator[Staff]:
        """Whoever measures for runs like this one; opening takes some seconds.

        Raises:
            EvaluatorError: the task's baseline or reference does not work on this machine.
        """
        with self._lock:
            found = self._opened(at)
            found.users += 1
        try:
            yield found.staff
        finally:
            with self._lock:
                found.users -= 1
                found.since = time.monotonic()

    def _opened(self, at: Setting) -> _Open:
        nobody = {"planner_model": None, "writer_model": None, "writers": (), "record": None}
        config = at.config.model_copy(update={} if is_fake(at) else {"model": "agent", **nobody})
        where = (config.pool, config.ray_address, config.gpu_model, config.gpus, config.parallel)
        key = f"{config.model}:{at.task.hash if at.task else ''}:{where}"
        if key not in self._open:
            stack = ExitStack()
            self._open[key] = _Open(stack.enter_context(staffed(config, at.task, _say)), stack)
            if self._watch is None:
                self._watch = threading.Thread(target=self._close_idle, name="idle evaluators", daemon=True)
                self._watch.start()
        return self._open[key]

    def _close_idle(self) -> None:
        while not self._ended.wait(min(LOOK_S, self._idle_s)):
            with self._lock:
                now = time.monotonic()
                idle = [k for k, o in self._open.items() if not o.users and now - o.since >= self._idle_s]
                for key in idle:
                    self._open.pop(key).stack.close()

    @property
    def open(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._open)

    def close(self) -> None:
        """Those at work are not waited for: their processes end with this one, and the next evaluator to start sweeps
        up after them."""
        self._ended.set()
        if not self._lock.acquire(timeout=1):  # one is being opened
            return
        try:
            for found in self._open.values():
                if not found.users:
                    found.stack.close()
        finally:
            self._lock.release()


def _say(text: str) -> None:
    """A GPU was put aside: to whoever reads the server's stderr, since stdout belongs to the protocol."""
    print(f"ksearch: {text}", file=sys.stderr, flush=True)


def is_fake(at: Setting) -> bool:
    return at.config.model.partition(":")[0] == FAKE
