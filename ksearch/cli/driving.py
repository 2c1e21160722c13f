"""Carrying a run on in this process: who answers it, how it is stopped, what is shown meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from ksearch import events as ev
from ksearch.cli import options as opt
from ksearch.cli.boundary import INTERRUPTED, say
from ksearch.cli.lines import event_line, times
from ksearch.codec import encode_event
from ksearch.drivers import Desk, drive
from ksearch.protocol import Holder, Request
from ksearch.run import Run
from ksearch.search import Done, Wait
from ksearch.state import State

SHOWN = (ev.Planned, ev.PlanRefused, ev.PlanAbandoned, ev.WriteFailed, ev.Evaluated, ev.WorkLost, ev.Judged)
SHOWN_ALSO = (ev.CycleClosed, ev.Submitted, ev.Paused, ev.Ended, ev.Commanded)


@dataclass
class Stop:
    """Ctrl-C once: stop after the step at hand. Twice: now."""

    asked: bool = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("stopping after this step; Ctrl-C again stops at once")

    def check(self) -> None:
        if self.asked:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        self.check()
        time.sleep(seconds)
        self.check()


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """SIGINT and SIGTERM ask for a clean stop while this lasts."""
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Interruptible(Desk):
    """A desk that looks up between two pieces of work."""

    stop: Stop = field(default_factory=Stop)

    def serve(self, run: Run, request: Request, holder: Holder) -> None:
        self.stop.check()
        super().serve(run, request, holder)
        self.stop.check()


def carry_on(run: Run, *, quiet: bool, as_json: bool) -> int:
    """Drive a run until it is done, paused or stopped, and say so. Returns the exit code."""
    desk = desk_for(run)
    _unpause(run)
    if not quiet:
        run.watchers.append(_json_line if as_json else _plain_line)
    stop = Stop()
    try:
        with listening(stop):
            served = Interruptible(desk.planner, desk.writer, desk.evaluator, stop)
            ended = drive(run, served, stop.sleep)
    except KeyboardInterrupt:
        say(f"stopped; nothing is lost. Go on with: ksearch resume {run.id}")
        return INTERRUPTED
    _report(run, ended, as_json)
    return 0


def _unpause(run: Run) -> None:
    """To resume is to want it to go on: a pause is lifted, in the log, by name."""
    state = run.refresh()
    if state.paused or (state.stopping and not state.ended):
        run.command(ev.Resume(), opt.login_name())


def _json_line(event: ev.Event, _: State) -> None:
    opt.print_json(encode_event(event))


def _plain_line(event: ev.Event, state: State) -> None:
    if isinstance(event, SHOWN + SHOWN_ALSO) and (text := event_line(event, state)):
        print(f"[{state.evaluated}/{state.config.budget.evaluations}] {text}", flush=True)


def _report(run: Run, ended: Done | Wait, as_json: bool) -> None:
    state = run.state
    best = state.evaluations.get(state.best_id or "")
    if as_json:
        done = {"run": run.id, "state": "done" if isinstance(ended, Done) else "wait", "why": ended.why}
        speedup = best.speedup.value if best and best.speedup else None
        opt.print_json({**done, "evaluations": state.evaluated, "best": state.best_id, "speedup": speedup})
        return
    print(f"run {run.id}: {ended.why}; {state.evaluated} evaluations")
    if best:
        print(f"best program {best.program_id[:12]}: {times(best.speedup)} over the baseline")


def desk_for(run: Run) -> Desk:
    """Who answers, by the settings in the run's log."""
    from ksearch.service.desks import open_desk

    return open_desk(run)
