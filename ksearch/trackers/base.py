"""What a tracker is told, and what it is. Times are seconds since the epoch, from the log: a run that is told of
afterwards looks the same as one that was told of while it went on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ksearch.types import Evaluation


@dataclass(frozen=True, slots=True)
class Start:
    run: str
    at: float
    parameters: Mapping[str, Any]  # flat: rules, budget, task, model, versions


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model that was answered, or lost. `seq` is the event that told of it: a name for good."""

    seq: int
    request: str
    role: str  # plan, write
    node: str
    model: str
    began: float
    ended: float
    tokens: int = 0
    usd: float | None = None
    finish: str = ""
    error: str = ""  # why there is no answer


@dataclass(frozen=True, slots=True)
class Measured:
    """One evaluation, and how the run stood after it."""

    seq: int
    request: str
    node: str
    began: float
    ended: float
    evaluation: Evaluation
    count: int  # evaluations so far, this one included
    best_speedup: float | None
    tokens: int
    usd: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """An action is done: what was predicted beside what was measured."""

    seq: int
    node: str
    title: str
    at: float
    reason: str
    predicted: float | None
    gain: float | None
    count: int


@dataclass(frozen=True, slots=True)
class End:
    at: float
    reason: str  # empty: the run has not ended
    summary: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0


Fact = Start | Call | Measured | Closed | End


class Tracker(Protocol):
    """Takes facts in order. May raise anything: the guard around it sees to it that nobody else notices."""

    def take(self, fact: Fact) -> None: ...

    def close(self) -> None:
        """Send what is left. Called once, last."""
