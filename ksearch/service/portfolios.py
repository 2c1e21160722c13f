"""A portfolio on its way through a run: composed of its programs, submitted, measured here, and kept or not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.drivers import Answer, Desk, Evaluator, Job
from ksearch.errors import EvaluatorError
from ksearch.evaluators.devices import device_of
from ksearch.fold import apply
from ksearch.holders import this_process
from ksearch.portfolio import Portfolio, make_portfolio
from ksearch.programs import PROGRAM_FILE
from ksearch.protocol import Kind, Plan, Refusal, Request
from ksearch.run import Run
from ksearch.service.beginning import Setting, log_of
from ksearch.service.best import ORIGIN_FILE
from ksearch.service.carrying import POLL_S
from ksearch.state import State, measured_or_waiting
from ksearch.tasks import Task
from ksearch.types import NodeStatus, Program, Ratio, Verdict
from ksearch.views import holder_of

ONLY_MEASURING = frozenset({Kind.EVALUATE})


class Fate(StrEnum):
    KEPT = "kept"  # the run's best now
    NOT_KEPT = "not_kept"  # measured, and the interval does not say that it beats the run's best
    FAILED = "failed"  # measured, and it did not pass
    WAITING = "waiting"  # submitted, to be measured


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it. `over`: the best before it, and that one's time over the portfolio's, in pairs."""

    fate: Fate
    over_id: str | None = None
    over: Ratio | None = None
    reason: str = ""


def portfolio_of(run: Run, task: Task, at_most: int, only: Collection[str]) -> Portfolio:
    """The portfolio of a run as it stands. Nothing is recorded."""
    made = {e.program_id for e in log_of(run) if isinstance(e, ev.Submitted) and e.members}
    state = run.state
    return make_portfolio(
        state.evaluations, state.best_id, run.program, task.spec, at_most=at_most, only=only, portfolios=made
    )


def files(portfolio: Portfolio, run: Run) -> dict[str, bytes]:
    """The program as files, as `ksearch best` writes them, so that `verify` and `export-kernel` take the folder."""
    program, context = portfolio.program, run.state.context
    origin = {"run": run.id, "node": "", "program": program.id}
    origin |= {name: context.get(name) for name in ("task", "task_folder", "task_hash", "version")}  # type: ignore[misc]
    made = {PROGRAM_FILE: json.loads(program.canonical), ORIGIN_FILE: origin}
    found = {path: text.encode() for path, text in program.sources.items()}
    return found | {name: (json.dumps(body, indent=1) + "\n").encode() for name, body in made.items()}


def submit(run: Run, portfolio: Portfolio, author: str) -> bool:
    """Let it into the run, under the node of the run's best. False: the run has it already.

    Raises:
        InvalidCommand: there is no budget for it, or the run is stopping.
    """
    if measured_or_waiting(run.refresh(), portfolio.program.id):
        return False
    title = f"Portfolio: {len(portfolio.members)} programs by shape"
    run.submit(portfolio.program, author, _place(run.state), title, portfolio.members)
    return True


def _place(state: State) -> str:
    """The best's own node where that is closed: the portfolio's gain over its parent is then its gain over the best."""
    node_id = holder_of(state, state.best_id or "")
    return node_id if node_id and state.tree[node_id].status is NodeStatus.SOLVED else trees.ROOT


def why_not_here(run: Run, at: Setting) -> str | None:
    """None where this machine may measure the run's programs: it has the device, and of the same model."""
    if at.task is None:
        return "the run has no task"
    device = device_of(at.task.spec)
    try:
        device.require()
    except EvaluatorError as error:
        return str(error)
    best = run.state.evaluations[run.state.best_id or ""]
    if at.task.spec.device == "cpu" and best.device and best.device != device.name:
        return f"the run's programs were measured on {best.device}, and this is {device.name}"
    return None


class _Nobody:
    """Plans and programs are not asked for here."""

    def prompt(self, job: Job) -> bytes:
        raise AssertionError("only measurements are asked for")

    def answer(self, job: Job, prompt: bytes) -> Answer:
        raise AssertionError("only measurements are asked for")

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        raise AssertionError("only measurements are asked for")


def measure(
    run: Run,
    evaluator: Evaluator,
    program_id: str,
    check: Callable[[], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Measure what waits in the run until this program has its verdict, or the run is paused.

    Args:
        check: raises before a program is begun where somebody wants it to stop; what was submitted stays.
    """
    holder, desk = this_process("portfolio"), Desk(_Nobody(), _Nobody(), evaluator)
    try:
        while program_id not in run.refresh().evaluations and not run.state.paused and _waits(run.state, program_id):
            check()
            got = run.take(holder, ONLY_MEASURING)
            if isinstance(got, Request):
                desk.serve(run, got, holder)
            else:
                sleep(POLL_S)  # somebody else is at it
    finally:
        run.release(holder, "the command stopped")


def _waits(state: State, program_id: str) -> bool:
    return any(a.program_id == program_id for c in state.cycles.values() for a in c.unresolved)


def outcome(run: Run, portfolio: Portfolio) -> Outcome:
    """What the run says of it now."""
    state, id = run.state, portfolio.program.id
    done = state.evaluations.get(id)
    if done is None:
        return Outcome(Fate.WAITING, reason=state.paused or state.ended or "")
    if done.verdict is not Verdict.PASSED:
        return Outcome(Fate.FAILED, reason=f"{done.verdict}: {done.reason}")
    judged, before = _judged(run, id)
    if judged is None:
        return Outcome(Fate.WAITING, reason="measured, and to be judged when programs asked for before it are measured")
    return Outcome(Fate.KEPT if judged.new_best else Fate.NOT_KEPT, before, done.against.get(before or ""))


def _judged(run: Run, program_id: str) -> tuple[ev.Judged | None, str | None]:
    """The judgement of a program, and what was the run's best until then."""
    state = State()
    for event in log_of(run):
        if isinstance(event, ev.Judged):
            attempt = state.cycles[event.node_id].attempts[event.attempt]
            if attempt.program_id == program_id:
                return event, state.best_id
        state = apply(state, event)
    return None, None
