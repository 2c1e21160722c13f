"""The nouns of the field. Frozen, JSON-able, with no behaviour beyond checking their own values.

Names follow FlashInfer-Bench (definition, workload, solution, evaluation) and the paper (arXiv 2602.19128:
action, frontier, cycle, world model). Units are in the names. Every number is finite: a NaN never gets in.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What is known about one attempt: a closed list. A broken worker or GPU is no verdict, see `Lost`."""

    PASSED = "passed"
    # on a program, by the evaluator
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUES = "wrong_values"
    NON_FINITE = "non_finite"
    INPUT_CHANGED = "input_changed"
    STALE_OUTPUT = "stale_output"
    LATE_WRITE = "late_write"
    TOO_FAST = "too_fast"
    FORGED = "forged"
    FORBIDDEN_LIBRARY = "forbidden_library"
    LOWER_PRECISION = "lower_precision"
    HANG = "hang"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    # on a reply, before there is a program to measure
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNPARSABLE = "unparsable"
    DUPLICATE = "duplicate"


REPLY_VERDICTS = frozenset({Verdict.REFUSED, Verdict.TRUNCATED, Verdict.UNPARSABLE})


def check(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


def check_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = number and math.isfinite(value) and low <= value <= high  # type: ignore[arg-type, operator]
    check(good, f"{name} must be a finite number in [{low}, {high}], got {value!r}")


def _check_text(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be valid Unicode: {error}") from error


@dataclass(frozen=True, slots=True)
class Program:
    """A solution: one or several source files and where to enter them."""

    sources: Mapping[str, str]  # relative path -> text
    entry_point: str  # "kernel.cpp::run"
    language: str  # "cpp", "python", "triton", "cuda"

    def __post_init__(self) -> None:
        check(bool(self.sources), "a program needs at least one source file")
        for path, text in self.sources.items():
            _check_text(f"{path!r} and what it holds", path + text)
            parts = path.split("/")
            bad = path.startswith("/") or "\\" in path or "\0" in path or any(p in ("", ".", "..") for p in parts)
            check(not bad, f"source path {path!r} must be relative, without '..', '.' or backslashes")
        file, _, name = self.entry_point.partition("::")
        check(file in self.sources and bool(name), f"entry point {self.entry_point!r} must be FILE::NAME of a source")

    @property
    def canonical(self) -> bytes:
        """The bytes that the id is the SHA-256 of: canonical JSON, so no two programs share an id."""
        body = {"entry_point": self.entry_point, "language": self.language, "sources": dict(self.sources)}
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")

    @property
    def id(self) -> str:
        """Whole SHA-256 of `canonical`: also the program's address in the blob store."""
        return hashlib.sha256(self.canonical).hexdigest()


@dataclass(frozen=True, slots=True)
class Ratio:
    """Other time / own time from paired samples: above 1 means faster. `low`..`high` is the 95% interval."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("ratio", self.value, 0)
        check_number("low", self.low, 0, self.value)
        check(self.low > 0, "the low end of a ratio of times must be above 0")
        check_number("high", self.high, self.value)

    @property
    def faster(self) -> bool:
        """The interval excludes 1 on the fast side: the only thing that counts as an improvement."""
        return self.low > 1


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """One workload of one evaluation. Times and ratios only where it passed and was timed."""

    workload: str
    verdict: Verdict
    reason: str = ""  # one line a writer can act on
    latency_ms: float | None = None  # median
    baseline_ms: float | None = None  # median, measured in the same lease
    floor_ms: float | None = None  # roofline bound
    speedup: Ratio | None = None  # over the baseline
    against: Mapping[str, Ratio] = field(default_factory=dict)  # program id -> its time / ours
    max_abs_error: float | None = None
    max_rel_error: float | None = None

    def __post_init__(self) -> None:
        for name in ("latency_ms", "baseline_ms", "floor_ms", "max_abs_error", "max_rel_error"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 0)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a profile: all its launches within one call of the program."""

    name: str
    launches: int
    ms: float  # together

    def __post_init__(self) -> None:
        check_number("ms", self.ms, 0)


@dataclass(frozen=True, slots=True)
class Profile:
    """Where one call's time goes, as the program's own process tells it: advice for writers, never evidence."""

    workload: str
    bound: str  # memory, compute, latency, launch; empty where there is no profile
    summary: str  # a sentence or two; why there is no profile
    kernels: tuple[Kernel, ...] = ()  # the longest first
    counters: Mapping[str, float] = field(default_factory=dict)  # by `ncu`, where it may be used: percent of the peak


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluator measured of one program. `speedup` and `latency_ms` exist exactly when it passed."""

    program_id: str
    verdict: Verdict
    reason: str = ""  # one line a writer can act on
    stage: str = ""  # build, smoke, check, screen, time, confirm: where it ended
    latency_ms: float | None = None  # mean over the workloads, as the task defines it
    speedup: Ratio | None = None  # over the baseline: the paper's J
    against: Mapping[str, Ratio] = field(default_factory=dict)  # program id -> its time / ours
    workloads: tuple[WorkloadResult, ...] = ()
    log: str = ""  # the useful end of the build or run log, at most 4,000 characters
    flags: tuple[str, ...] = ()  # doubts that do not change the verdict, for a person to look at
    confirmed: bool = False  # measured again in fresh processes on unseen seeds
    device: str = ""  # model of the CPU or GPU: times of different models are never compared
    record: str | None = None  # blob: the whole record, samples and all
    seconds: float = 0.0  # wall time it took
    profiles: tuple[Profile, ...] = ()  # of a new best, where the evaluator makes them

    def __post_init__(self) -> None:
        on_reply = self.verdict in REPLY_VERDICTS or self.verdict is Verdict.DUPLICATE
        check(not on_reply, f"{self.verdict} is a verdict on a reply, not on a program")
        passed = self.verdict is Verdict.PASSED
        check(
            passed == (self.speedup is not None) == (self.latency_ms is not None),
            f"speedup and latency_ms must be given exactly when passed, got {self.verdict}, {self.speedup}",
        )
        if self.latency_ms is not None:
            check_number("latency_ms", self.latency_ms, 0)
        check_number("seconds", self.seconds, 0)


@dataclass(frozen=True, slots=True)
class Action:
    """An intent: one structural change to the parent's program, of the size of a single iteration."""

    title: str
    rationale: str = ""
    difficulty: int = 3  # 1 (routine) .. 5 (research)
    predicted_speedup: float | None = None  # over the parent's program; the baseline's under the root
    workloads: tuple[str, ...] = ()  # aimed at these only; empty = all
    enabling: bool = False  # may be slower than its parent: its children are to pay off

    def __post_init__(self) -> None:
        check(bool(self.title.strip()), "an action needs a title")
        level: object = self.difficulty
        whole = isinstance(level, int) and not isinstance(level, bool)
        check(whole and 1 <= self.difficulty <= 5, f"difficulty must be 1 to 5, got {self.difficulty!r}")
        if self.predicted_speedup is not None:
            check_number("predicted_speedup", self.predicted_speedup, 0, 1e6)


class NodeStatus(StrEnum):
    OPEN = "open"  # on the frontier, or waiting for its parent
    ACTIVE = "active"  # a cycle is working on it
    SOLVED = "solved"  # has a program; its children join the frontier
    REJECTED = "rejected"  # tried, and no attempt passed
    PRUNED = "pruned"  # withdrawn by planner or person, or its parent was rejected


class Origin(StrEnum):
    """Who put a node into the tree."""

    ENGINE = "engine"  # the root
    PLANNER = "planner"
    PERSON = "person"
    SUBMITTED = "submitted"  # made for a program that nobody had asked for
    PORTFOLIO = "portfolio"  # made for a program that dispatches to several others by shape


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    parent_id: str | None
    action: Action
    value: float = 0.5  # V, the planner's priority, 0..1
    status: NodeStatus = NodeStatus.OPEN
    origin: Origin = Origin.PLANNER
    pinned: bool = False  # a person wants it next
    notes: str = ""
    program_id: str | None = None  # best passing program; SOLVED only
    speedup: Ratio | None = None  # of that program over the baseline
    gain: Ratio | None = None  # of that program over the parent's: to set beside predicted_speedup
    attempts: int = 0  # when it closed
    closed_because: str = ""  # of the last cycle

    def __post_init__(self) -> None:
        check(bool(self.id), "a node needs an id")
        check_number("value", self.value, 0, 1)


@dataclass(frozen=True, slots=True)
class Insert:
    parent_id: str  # a node, or the local name of an insert before it in the same plan
    action: Action
    value: float = 0.5
    name: str = ""  # local name, so that one plan can insert a parent and its child
    id: str = ""  # the engine's own, given on acceptance

    def __post_init__(self) -> None:
        check_number("value", self.value, 0, 1)


@dataclass(frozen=True, slots=True)
class Update:
    node_id: str
    value: float | None = None
    difficulty: int | None = None
    notes: str | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            check_number("value", self.value, 0, 1)
        if self.difficulty is not None:
            Action("check", difficulty=self.difficulty)


@dataclass(frozen=True, slots=True)
class Prune:
    node_id: str
    reason: str = ""


TreeEdit = Insert | Update | Prune
Tree = dict[str, Node]  # in order of insertion, parents before children; replaced, never changed
