"""What is known at one moment of a run. Plain values: `fold` changes them, `search` decides by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.protocol import Cost, Request, SearchConfig
from ksearch.types import Evaluation, Ratio, Tree, Verdict

START, CLOSED, EMPTY = "start", "closed", "empty_frontier"  # why a plan is asked for


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at an action, made in the order of its request; `verdict` None while it is out."""

    request_id: str  # of the write; empty when the program was submitted
    round: int
    program_id: str | None = None
    verdict: Verdict | None = None
    reason: str = ""
    judged: ev.Judged | None = None
    writer: str = ""  # of several; see `ksearch.writers`


@dataclass(frozen=True, slots=True)
class Tally:
    """What one of several writers has brought and cost."""

    asked: int = 0  # attempts given to it
    judged: int = 0
    gains: int = 0  # attempts that made their action's gain over its parent surely larger
    log_gain: float = 0.0  # by how much, summed: logarithms of ratios
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0  # replies whose price nobody knows


@dataclass(frozen=True, slots=True)
class Cycle:
    """One action at work: what was tried, and the program to beat."""

    base_id: str | None  # the parent's program; None under the root, where the baseline is to be beaten
    attempts: tuple[Attempt, ...] = ()
    single: bool = False  # made for one submitted program: closes after it

    @property
    def best_id(self) -> str | None:
        return next((a.program_id for a in reversed(self.attempts) if a.judged and a.judged.improved), None)

    @property
    def unresolved(self) -> tuple[Attempt, ...]:
        return tuple(a for a in self.attempts if a.verdict is None)

    @property
    def round(self) -> tuple[Attempt, ...]:
        last = self.attempts[-1].round if self.attempts else 0
        return tuple(a for a in self.attempts if a.round == last)


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that is not answered yet."""

    request: Request
    seen: Tree  # the tree when it was asked: tells an overtaken edit from an invalid one
    lease: ev.Leased | None = None
    received: ev.Received | None = None  # a reply that is stored but not yet told
    lost: tuple[str, ...] = ()  # reasons, since the run was last resumed
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)  # no slots: `evolve` copies its dictionary, which is four times as quick as `replace`
class State:
    config: SearchConfig = field(default_factory=SearchConfig)
    context: Mapping[str, str] = field(default_factory=dict)
    tree: Tree = field(default_factory=trees.new_tree)
    cycles: Mapping[str, Cycle] = field(default_factory=dict)  # by node id
    pending: Mapping[str, Pending] = field(default_factory=dict)  # by request id
    plans_due: tuple[tuple[str, str], ...] = ((trees.ROOT, START),)  # (node, why) the planner has not seen
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)  # by program id
    best_id: str | None = None  # best program of the run, by paired evidence
    asked: int = 0  # requests made: their ids are r0, r1, ...
    attempts: int = 0
    evaluated: int = 0
    spent: Cost = field(default_factory=Cost)
    reserved: Mapping[str, Cost] = field(default_factory=dict)  # by request id, not settled yet
    lapsed: Mapping[str, tuple[Cost, ...]] = field(default_factory=dict)  # spent for want of a reply, by request id
    unpriced: int = 0  # calls whose price nobody knows
    prompt_tokens: int = 0  # of replies that report what was read from a cache
    cached_tokens: int = 0  # of these, read from the provider's cache
    written_by: Mapping[str, str] = field(default_factory=dict)  # writer by request id, where there are several
    writers: Mapping[str, Tally] = field(default_factory=dict)  # by name
    worked_s: float = 0.0  # time while work was out under a living lease
    last_at: float = 0.0
    withdrawn: frozenset[str] = frozenset()  # requests taken back: a late answer is noted, once
    paused: str | None = None
    paused_until: float | None = None  # the pause ends by itself then; None: somebody must end it
    stopping: str | None = None
    exhausted: str | None = None  # the planner has nothing to add, or failed
    ended: str | None = None


def evolve(state: State, **changes: Any) -> State:
    """`dataclasses.replace` for states: a log of 50,000 events makes a few hundred thousand of them."""
    new = object.__new__(State)
    new.__dict__.update(state.__dict__, **changes)
    return new


def working_s(state: State, now: float) -> float:
    """Working time until `now`, in seconds. A dead holder's time counts to the end of its lease, no further."""
    deadlines = [p.lease.deadline for p in state.pending.values() if p.lease]
    return state.worked_s + max(0.0, min(now, max(deadlines, default=0.0)) - state.last_at)


def was_asked(state: State, request_id: str) -> bool:
    number = request_id.removeprefix("r")
    short = number.isascii() and number.isdigit() and len(number) < 16  # Python refuses to read thousands of digits
    return short and int(number) < state.asked and request_id == f"r{int(number)}"


def measured_or_waiting(state: State, program_id: str) -> str | None:
    if done := state.evaluations.get(program_id):
        return f"this very program was measured before: {done.verdict}"
    waiting = any(a.program_id == program_id for c in state.cycles.values() for a in c.unresolved)
    return "this very program is waiting to be measured" if waiting else None


def versus(state: State, done: Evaluation, other_id: str | None) -> Ratio | None:
    """Other's time / ours. Unpaired (the other was not there when we were timed): the widest that both allow.

    None: there is no other, or it was timed on another model of device, which says nothing.
    """
    if other_id is None or done.speedup is None:
        return None
    other = state.evaluations[other_id].speedup
    if other is None or other_id in done.against or state.evaluations[other_id].device != done.device:
        return done.against.get(other_id)
    mine = done.speedup
    return Ratio(mine.value / other.value, mine.low / other.high, mine.high / other.low)


def faster_on(done: Evaluation, other_id: str | None, workloads: tuple[str, ...]) -> bool:
    """Whether it surely beats the other on the workloads that its action is aimed at, all together.

    The interval is the geometric mean of theirs, end by end: wider than the true one, so never too sure.
    """
    rows = [w for w in done.workloads if w.workload in workloads]
    found = [w.against.get(other_id) if other_id else w.speedup for w in rows]
    lows = [ratio.low for ratio in found if ratio]
    return bool(workloads) and len(lows) == len(workloads) and math.prod(lows) > 1
