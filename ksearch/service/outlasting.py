"""A run that outlasts an outage: it waits through pauses that have an end, and goes on."""

from __future__ import annotations

from collections.abc import Callable

from ksearch.protocol import Done, Wait
from ksearch.run import Run

POLL_S = 0.5  # how soon a person's word is heard meanwhile


def outlast(
    run: Run, go: Callable[[], Done | Wait], sleep: Callable[[float], None], try_now: Callable[[], None]
) -> Done | Wait:
    """Carry a run on by `go` until it is done, or paused until somebody acts. Returns what `go` returned last.

    Args:
        sleep: in short pieces; may raise to interrupt. The run is at rest then, with nothing out.
        try_now: called when somebody let the run go on before its time: who was down may be up again.
    """
    while True:
        ended = go()
        if run.state.paused is None or run.state.paused_until is None:
            return ended
        if _sit_out(run, sleep):
            try_now()


def _sit_out(run: Run, sleep: Callable[[float], None]) -> bool:
    """Wait for the end of the pause. Whether somebody ended it before that."""
    while run.state.paused is not None and (until := run.state.paused_until) is not None:
        left = until - run.clock()
        if left <= 0:
            return False
        sleep(min(POLL_S, left))
        run.refresh()
    return run.state.paused is None
