"""A run carried forward by those who can answer only part of it: an evaluator beside agents, for example."""

from __future__ import annotations

import time
from collections.abc import Callable

from ksearch.drivers import Desk
from ksearch.holders import this_process
from ksearch.protocol import Done, Kind, Request, Wait
from ksearch.run import Run
from ksearch.search import ALL_KINDS, ask

POLL_S = 0.3


def carry(
    run: Run, desk: Desk, kinds: frozenset[Kind], sleep: Callable[[float], None] = time.sleep, *, stay: bool = False
) -> Done | Wait:
    """Answer what is of these kinds until nothing of it can come without an answer from outside.

    Args:
        stay: wait for such answers, until the run has ended or is paused.

    Returns:
        Done, or the Wait that says what is wanted from outside.
    """
    holder = this_process("worker")
    try:
        while True:
            got = run.take(holder, kinds, render=lambda state, request: desk.prompt(run, state, request))
            if isinstance(got, Request):
                desk.serve(run, got, holder)
                continue
            if isinstance(got, Done) or run.state.paused or not (stay or _may_come(run, kinds)):
                return got
            sleep(POLL_S)
    finally:
        run.release(holder, "the driver stopped")


def _may_come(run: Run, kinds: frozenset[Kind]) -> bool:
    """Whether all that the run waits for is in the hands of workers of our kinds: theirs may lead to more for us."""
    if isinstance(ask(run.state, run.clock(), ALL_KINDS - kinds), Request):
        return False
    return all(p.request.kind in kinds for p in run.state.pending.values() if p.lease)
