"""What is written into the log: the truth from which every state is rebuilt.

Each event says what came out (the node chosen, the edits accepted, whether an attempt improved), never how it
was decided: a later version of `select` cannot rewrite an old run. `at` is seconds since the epoch, given by
the driver's clock; the core has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ksearch.protocol import Budget, Cost, Holder, Plan, Request, SearchConfig, Usage
from ksearch.types import Action, Evaluation, Node, Ratio, TreeEdit, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The first event of every run. `context` holds what faces need to go on: task, models, versions."""

    config: SearchConfig
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Event):
    """The engine wants this work. It stays wanted until it is answered, abandoned or withdrawn."""

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased(Event):
    """Somebody works on it until `deadline`; `reserved` is set aside before anything is spent."""

    request_id: str
    holder: Holder
    deadline: float
    reserved: Cost = field(default_factory=Cost)
    prompt: str | None = None  # blob of the rendered prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired(Event):
    """The holder is dead or late. What was reserved counts as spent; the work is asked again."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    """A raw reply is stored and paid for: this settles the reservation. Parsing comes after."""

    request_id: str
    raw: str  # blob
    cost: Cost = field(default_factory=Cost)
    model: str = ""
    finish: str = ""
    usage: Usage | None = None
    sent: str = ""  # the parameters as they went over the wire, as JSON; empty where nobody tells
    notes: tuple[str, ...] = ()  # what is odd: a parameter that was dropped, a count that was not believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Event):
    """Accepted edits, with the engine's ids. `dropped`: edits that other events had overtaken, and why."""

    request_id: str
    edits: tuple[TreeEdit, ...] = ()
    dropped: tuple[str, ...] = ()
    assessment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefused(Event):
    """None of the edits was taken; the reason goes back to the planner."""

    request_id: str
    reason: str
    offered: Plan | None = None
    verdict: Verdict | None = None  # set when there was no plan at all in the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAbandoned(Event):
    request_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Event):
    """A program was written (its text is the blob of this id) and waits to be measured."""

    request_id: str
    program_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailed(Event):
    """An attempt without a program to measure: refused, truncated, unparsable, or one measured before."""

    request_id: str
    verdict: Verdict
    reason: str
    program_id: str | None = None  # the duplicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated(Event):
    request_id: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLost(Event):
    """The worker, machine or provider failed. Never a verdict; the work is asked again."""

    request_id: str
    reason: str
    billed: bool = True  # False: what was reserved is free again


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored(Event):
    """An answer to work that had been withdrawn came in; its raw text is kept, nothing else happens."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Event):
    """The decision on one attempt, in the order of requests, and the evidence it stands on."""

    node_id: str
    attempt: int  # index within the cycle
    improved: bool  # over the cycle's best until then
    beats_parent: bool
    new_best: bool  # over every program of the run
    versus_best: Ratio | None = None
    versus_parent: Ratio | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleClosed(Event):
    """The engine ends work on an action: solved with its best program, or rejected without one.

    `unfinished`: the run's end cut it short before anything passed, which says nothing about the action: it is
    open again, for the day that the run goes on.
    """

    node_id: str
    reason: str  # stagnation, behind_parent, attempt_limit, budget, stopped, single
    program_id: str | None = None
    speedup: Ratio | None = None
    gain: Ratio | None = None  # over the parent's program
    pruned: tuple[str, ...] = ()  # open descendants of a rejected node, withdrawn with it
    unfinished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(Event):
    """A program nobody asked for. It enters under `node_id`; `created` is that node when the engine made it."""

    node_id: str
    program_id: str
    author: str
    created: Node | None = None
    members: tuple[str, ...] = ()  # portfolio: the programs it dispatches to


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    reason: str
    author: str = "engine"
    until: float | None = None  # it goes on by itself then; None: when somebody says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """Nothing is left to do, and why. A command that makes room (more budget, a new action) reopens the run."""

    reason: str  # budget: evaluations, budget: usd, ..., exhausted, planner_failed, stopped


# --- what people say: the same way as replies, with an author ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pause:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    pass


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run: nothing new is asked, what is out may finish, open cycles close with their best."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pin:
    node_id: str
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class Boost:
    node_id: str
    value: float


@dataclass(frozen=True, slots=True)
class PruneNode:
    node_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AddAction:
    parent_id: str
    action: Action
    value: float = 0.5
    id: str = ""  # the engine's own


@dataclass(frozen=True, slots=True)
class SetBudget:
    budget: Budget


@dataclass(frozen=True, slots=True)
class SetParallel:
    """How much may be at work at once from now on. What is at work already goes on."""

    max_active: int  # actions at once
    width: int  # programs written at once for one action


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    node_id: str | None = None
    program_id: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A person's word on a program whose numbers looked odd."""

    program_id: str
    accept: bool
    text: str = ""


Command = Pause | Resume | Stop | Pin | Boost | PruneNode | AddAction | SetBudget | SetParallel | Note | Review


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded(Event):
    command: Command
    author: str


AnyEvent = (
    RunStarted
    | Asked
    | Leased
    | Expired
    | Received
    | Planned
    | PlanRefused
    | PlanAbandoned
    | Written
    | WriteFailed
    | Evaluated
    | WorkLost
    | Ignored
    | Judged
    | CycleClosed
    | Submitted
    | Paused
    | Ended
    | Commanded
)
