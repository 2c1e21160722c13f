"""What is asked, what is answered, and the rules of a run: the vocabulary between the core and its drivers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ksearch.types import REPLY_VERDICTS, Evaluation, Program, TreeEdit, Verdict, check, check_number


class Kind(StrEnum):
    PLAN = "plan"  # answer with a Plan
    WRITE = "write"  # answer with a Program
    EVALUATE = "evaluate"  # answer with an Evaluation


@dataclass(frozen=True, slots=True)
class Request:
    """One piece of work. It keeps its id however often it has to be handed out again."""

    id: str
    kind: Kind
    node_id: str  # PLAN: the node whose cycle has just closed, or the root
    program_id: str | None = None  # WRITE: program to start from; EVALUATE: program to measure
    against: tuple[str, ...] = ()  # EVALUATE: programs to time beside it, interleaved
    why: str = ""  # PLAN: start, closed, empty_frontier
    writer: str = ""  # WRITE: which of the run's writers is to write; empty where there is only one


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to hand out now. `until`: the first deadline of work that is out, in seconds since the epoch."""

    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who works on a request. A dead local process is recognised by host, boot, pid and start time."""

    name: str
    host: str = ""
    boot: str = ""
    pid: int = 0
    started: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What was spent, or is reserved. `usd` None: the price is unknown, which is not the same as free."""

    tokens: int = 0
    usd: float | None = 0.0

    def __post_init__(self) -> None:
        check_number("tokens", self.tokens, 0)
        if self.usd is not None:
            check_number("usd", self.usd, 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, as the provider counted them. None: not reported, which is not the same as 0."""

    tokens_in: int | None = None  # cached ones included
    tokens_out: int | None = None  # reasoning included
    tokens_cached: int | None = None  # of the prompt, read from the provider's cache

    def __post_init__(self) -> None:
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 0)


@dataclass(frozen=True, slots=True)
class Plan:
    edits: tuple[TreeEdit, ...] = ()
    assessment: str = ""  # what the planner makes of the last cycle, in its own words


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that holds no plan or program: it says no, was cut off, or cannot be read."""

    verdict: Verdict
    reason: str

    def __post_init__(self) -> None:
        check(self.verdict in REPLY_VERDICTS, f"{self.verdict} is no verdict on a reply")


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker, machine or provider failed. It says nothing about the program, so the request is asked again."""

    reason: str
    billed: bool = True  # False: it is known that nothing was spent; else what was reserved counts as spent
    again: bool = True  # False: asking again is of no use before somebody acts (no key, no quota): the run pauses
    until: float | None = None  # asking is of no use before then (an outage): the run pauses, and goes on by itself


Reply = Plan | Program | Evaluation | Refusal | Lost


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None = no limit. Spending is reserved before it happens."""

    evaluations: int = 120
    attempts: int | None = None  # None = 3 times the evaluations
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None  # of working time: while a request is out

    def __post_init__(self) -> None:
        for name in ("evaluations", "attempts", "tokens", "usd", "seconds"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 0)

    @property
    def max_attempts(self) -> int:
        return self.attempts if self.attempts is not None else 3 * self.evaluations


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """The rules of one run, frozen into its log. Defaults are the paper's (FlashInfer tasks)."""

    budget: Budget = field(default_factory=Budget)
    stagnation: int = 7  # K: attempts without improvement that close a cycle
    max_new_nodes: int = 3  # inserts accepted from one plan
    max_difficulty: int = 4  # harder actions wait until nothing easier is open
    max_active: int = 1  # cycles at once
    width: int = 1  # programs written at once for one action: a round
    max_retries: int = 3  # answers lost or refused to one request before the engine gives up on it
    reserve: Cost = field(default_factory=Cost)  # worst case of one model call, set aside before it is made
    writers: tuple[str, ...] = ()  # names of several who write; see `ksearch.writers`
    bandit: bool = False  # who writes next: by gain per cost; else each in turn
    passing_weight: int | None = None  # towards K, an attempt that passes without improving counts as so many; None: 1

    def __post_init__(self) -> None:
        for name in ("stagnation", "max_new_nodes", "max_difficulty", "max_active", "width", "passing_weight"):
            value = 1 if name == "passing_weight" and self.passing_weight is None else getattr(self, name)
            check(isinstance(value, int) and value >= 1, f"{name} must be a whole number of at least 1, got {value!r}")
        check(len(set(self.writers)) == len(self.writers), f"each writer is named once, got {', '.join(self.writers)}")
        check(self.max_retries >= 0, f"max_retries must not be negative, got {self.max_retries!r}")
