"""The paper as a straight line: one worker, one request at a time, until the run is done or paused."""

from __future__ import annotations

import time
from collections.abc import Callable

from ksearch.drivers.desk import Desk
from ksearch.holders import this_process
from ksearch.protocol import Done, Request, Wait
from ksearch.run import Run


def drive(run: Run, desk: Desk, sleep: Callable[[float], None] = time.sleep) -> Done | Wait:
    """Carry a run forward. Returns why it stopped: done, or paused. Interrupted, it gives back what it holds."""
    holder = this_process("loop")
    try:
        while True:
            match run.take(holder, render=lambda state, request: desk.prompt(run, state, request)):
                case Request() as request:
                    desk.serve(run, request, holder)
                case Wait() as wait if not run.state.paused:
                    sleep(0.2 if wait.until is None else min(0.2, max(0.0, wait.until - run.clock())))
                case stopped:
                    return stopped
    finally:
        run.release(holder, "the driver stopped")
