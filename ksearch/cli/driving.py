"""Carrying a run on in this process: who answers it, how it is stopped, what it says in the end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from ksearch import events as ev
from ksearch.cli import options as opt
from ksearch.cli.boundary import INTERRUPTED, say
from ksearch.cli.display import watching
from ksearch.cli.lines import times
from ksearch.config import Loaded, changed, recorded
from ksearch.drivers import Desk, drive, drive_many
from ksearch.errors import BadInput
from ksearch.protocol import Done, Holder, Request, Wait
from ksearch.run import Run
from ksearch.search import ALL_KINDS
from ksearch.service.beginning import begin, setting
from ksearch.service.carrying import carry
from ksearch.service.desks import Staff, staffed
from ksearch.service.outlasting import outlast
from ksearch.service.parallel import Parallel
from ksearch.service.preflight import objection, preflight
from ksearch.service.tracking import tracked, wanted
from ksearch.state import State
from ksearch.store import Store
from ksearch.tasks import load_task


def never() -> bool:
    return False


@dataclass
class Stop:
    """Ctrl-C once: stop after the step at hand. Twice: now. `enough`: another reason to stop after the step at hand."""

    asked: bool = False
    enough: Callable[[], bool] = never

    @property
    def due(self) -> bool:
        return self.asked or self.enough()

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("stopping when what is at work now is done; Ctrl-C again stops at once")

    def check(self) -> None:
        if self.due:
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


@dataclass(frozen=True)
class Manner:
    """How a search is shown, and whether it stays when only answers from outside are wanted."""

    quiet: bool = False
    as_json: bool = False
    stay: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings that a resumed run goes on with


def begin_and_carry_on(store: Store, name: str | None, loaded: Loaded, manner: Manner) -> int:
    """Begin a run once everybody who is needed is ready: nothing is begun, or spent, that could not go on."""
    config = loaded.config
    if why := objection(config) or _unused_address(loaded):
        raise BadInput(why)
    wanted(config.track)
    if not manner.quiet:
        say(preflight(config))
    task = load_task(config.task) if config.task else None
    with staffed(config, task, say) as staff:
        return _carry_on(begin(store, name, loaded, staff.machine()), staff, manner)


def _unused_address(loaded: Loaded) -> str | None:
    """An address that was asked for, and nobody who is asked there."""
    flags = [f"--{k.replace('_', '-')}" for k in ("base_url", "key_env") if loaded.origins[k].startswith("flag")]
    kinds = {spec.partition(":")[0] for spec in (loaded.config.planner, *loaded.config.all_writers)}
    if not flags or not kinds <= {"agent", "command", "transcript", "fake"}:
        return None
    return f"{' and '.join(flags)} say where a model is, and none is named that is asked there: add --model openai:NAME"


def carry_on(run: Run, manner: Manner) -> int:
    """Go on with a run as it was begun."""
    at = setting(run.state)
    with staffed(changed(at.config, manner.changes), at.task, say) as staff:
        _unpause(run)
        return _carry_on(run, staff, manner)


def _carry_on(run: Run, staff: Staff, manner: Manner) -> int:
    """Drive a run until it is done, paused, stopped, or wants answers from outside. Returns the exit code."""
    stop = Stop()
    try:
        with listening(stop), watching(run, quiet=manner.quiet, as_json=manner.as_json):
            ended = drive_here(run, staff, stop, manner)
    except KeyboardInterrupt:
        say(f"stopped; nothing is lost. Go on with: ksearch resume {run.id}")
        return INTERRUPTED
    _report(run, ended, manner.as_json)
    return 1 if run.state.paused or planner_failed(run.state) else 0


def drive_here(run: Run, staff: Staff, stop: Stop, manner: Manner | None = None) -> Done | Wait:
    """Drive a run in this process until it is done or paused, or what is wanted must come from outside.

    Raises:
        KeyboardInterrupt: `stop` was due; what was held is given back.
    """
    manner, at = manner or Manner(), setting(run.state)
    desk = staff.desk(run, replace(at, config=changed(at.config, manner.changes)))
    served = Interruptible(desk.planner, desk.writer, desk.evaluator, stop)
    at_once = Parallel(run, staff.parallel, staff.devices)
    with _tracked(run):
        return outlast(run, lambda: _go(run, served, staff, at_once, stop, stay=manner.stay), stop.sleep, staff.try_now)


def _go(run: Run, desk: Desk, staff: Staff, at_once: Parallel, stop: Stop, *, stay: bool) -> Done | Wait:
    if staff.parallel != "1":
        ended = drive_many(run, desk, at_once.pools, lambda: stop.due, staff.kinds, stay=stay)
        stop.check()
        return ended
    at_once.settle()
    if staff.kinds == ALL_KINDS:
        return drive(run, desk, stop.sleep)
    return carry(run, desk, staff.kinds, stop.sleep, stay=stay)


def _tracked(run: Run) -> AbstractContextManager[None]:
    """Those who are told of the run, by the settings that it was begun with."""
    loaded = recorded(run.state.context)
    names = (loaded.config.track or "") if loaded else ""
    return tracked(run, [name.strip() for name in names.split(",") if name.strip()], say)


def _unpause(run: Run) -> None:
    """To resume is to want it to go on: a pause is lifted, a stop or a planner's failure forgotten, in the log, by
    name. A spent budget stays spent: `ksearch command RUN budget` raises it."""
    state = run.refresh()
    if state.paused or state.stopping or planner_failed(state):
        run.command(ev.Resume(), opt.login_name())


def planner_failed(state: State) -> bool:
    return (state.ended or "").startswith("planner_failed")


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
    if state.paused or planner_failed(state):
        say(f"when the cause is mended: ksearch resume {run.id}")
    elif isinstance(ended, Wait):
        say(f"answers from outside: ksearch ask {run.id}, ksearch tell; then ksearch resume {run.id} measures")
    elif best:
        say(f"its files: ksearch best {run.id} -o DIR; measured again: ksearch verify DIR")
