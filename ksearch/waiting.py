"""Waiting: which lost work pauses a run, until when, and when the run goes on by itself.

A provider that is down is no fault of the run's: it pauses, keeps its budget, and goes on at a time that its log names.
What only a person can mend (a key, a balance) pauses it until somebody says so.
"""

from __future__ import annotations

import time

from ksearch import events as ev
from ksearch.protocol import Lost
from ksearch.state import State


def pauses(state: State, lost: Lost, now: float) -> list[ev.Event]:
    """The pause that a loss brings, if any. A person's own pause, or a stop, is never overruled by one that ends."""
    if not lost.again:
        return [ev.Paused(at=now, reason=lost.reason)]
    if lost.until is None or lost.until <= now or state.stopping or state.ended:
        return []
    if state.paused and (state.paused_until is None or state.paused_until >= lost.until):
        return []
    then = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(lost.until))
    return [ev.Paused(at=now, reason=f"until {then} UTC, then asked again: {lost.reason}", until=lost.until)]


def goes_on(state: State, now: float) -> list[ev.Event]:
    """The end of a pause that had one. Recorded like a person's word, so that retries count afresh."""
    over = state.paused and state.paused_until is not None and state.paused_until <= now
    return [ev.Commanded(at=now, command=ev.Resume(), author="engine")] if over else []
