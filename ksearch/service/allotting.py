"""Which of many tasks gets the next part of a shared budget: pure, so that a resumed campaign decides alike.

First each task gets `least` evaluations, in the order of the list. Then each next `share` goes to the task that has
used least for its weight: 1 + what it gained per cost lately / what all gained on average. Gain is the logarithm of
speed; lately means its last `WINDOW` shares. So a task that gains as the average gets twice what one gets that gains
nothing any more, and none starves. What was begun is finished first. Giving all to the best lately was tried, and is
worse than equal parts: gains come in jumps (benchmarks/campaign_policy.py).

All follows from what the tasks have made. Nothing about parts is written down, so nothing of it can be lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ksearch import events as ev
from ksearch.budget import usd_committed
from ksearch.fold import apply
from ksearch.state import State

WINDOW = 5  # shares


class Unit(StrEnum):
    """What gain is set against: money where the campaign has a limit of money, else tokens, else evaluations."""

    EVALUATIONS = "evaluations"
    TOKENS = "tokens"
    USD = "usd"


@dataclass(frozen=True, slots=True)
class Step:
    """Where a run was after one evaluation: what it had spent in all, and how fast its best program was."""

    evaluations: int = 0
    tokens: int = 0
    usd: float = 0.0
    log_speed: float = 0.0  # of the best over the baseline; 0 while nothing beats it: the baseline is there anyway

    def cost(self, unit: Unit) -> float:
        return float(getattr(self, unit))


@dataclass(frozen=True, slots=True)
class Standing:
    """One task, as far as the budget is concerned."""

    task: str
    made: int = 0  # see `made_by`
    over: str = ""  # why it can get no more; empty while it can
    steps: tuple[Step, ...] = (Step(),)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a campaign shares out its evaluations."""

    evaluations: int  # in all
    least: int = 20  # of each task, first
    share: int = 20  # given at a time after that
    unit: Unit = Unit.EVALUATIONS


@dataclass(frozen=True, slots=True)
class Grant:
    task: str
    evaluations: int
    why: str


def rate(standing: Standing, rules: Rules) -> float:
    """Logarithm of speed gained over the last `WINDOW` shares, per unit of cost."""
    last = standing.steps[-1]
    first = standing.steps[max(0, len(standing.steps) - 1 - WINDOW * rules.share)]
    spent = last.cost(rules.unit) - first.cost(rules.unit)
    gained = max(0.0, last.log_speed - first.log_speed)
    if spent <= 0:  # what costs nothing pays best, if it pays at all
        return math.inf if gained else 0.0
    return gained / spent


def weights(standings: Sequence[Standing], rules: Rules) -> list[float]:
    """What each task's part is to be in proportion to: 1 where nothing was gained lately, on average 2."""
    rates = [rate(s, rules) for s in standings]
    average = sum(r for r in rates if math.isfinite(r)) / len(rates)
    most = float(len(rates))
    return [1.0 + (min(most, r / average) if average else most if r else 0.0) for r in rates]


def next_grant(standings: Sequence[Standing], rules: Rules) -> Grant | None:
    """Who gets what next; None: nothing is left, or nobody can use it."""
    left = rules.evaluations - sum(s.made for s in standings)
    playing = [s for s in standings if not s.over]
    if left <= 0 or not playing:
        return None
    for standing in playing:
        if rest := _begun(standing, rules):
            return Grant(standing.task, min(rest, left), "the rest of its part")
    for standing in playing:
        if not standing.made:
            return Grant(standing.task, min(rules.least, left), "its first")
    found = weights(playing, rules)
    best = min(range(len(playing)), key=lambda i: (_used(playing[i], rules) / found[i], playing[i].made))
    why = f"weight {found[best]:.1f}" if max(found) > 1 else "no task gains lately"
    return Grant(playing[best].task, min(rules.share, left), f"it has used least for its part: {why}")


def _used(standing: Standing, rules: Rules) -> float:
    return standing.made if rules.unit is Unit.EVALUATIONS else standing.steps[-1].cost(rules.unit)


def _begun(standing: Standing, rules: Rules) -> int:
    """What is missing from the part that a task has begun."""
    if standing.made < rules.least:
        return rules.least - standing.made if standing.made else 0
    return -(standing.made - rules.least) % rules.share


def made_by(state: State) -> int:
    """Evaluations that a run has used up. Where attempts come to no evaluation, three of them count as one, as in the
    limit of a single run: else a writer that writes nothing would never be done."""
    return max(state.evaluated, state.attempts // 3)


class Steps:
    """What each evaluation of a run had cost and brought; the first step is its beginning. A watcher of the run."""

    def __init__(self) -> None:
        self.found = [Step()]

    def see(self, event: ev.Event, state: State) -> None:
        if isinstance(event, ev.Evaluated):
            speed = self.found[-1].log_speed
            self.found.append(Step(state.evaluated, state.spent.tokens, usd_committed(state), speed))
        elif isinstance(event, ev.Judged) and event.new_best:
            best = state.evaluations[state.best_id or ""].speedup
            speed = max(0.0, math.log(best.value)) if best else 0.0
            self.found[-1] = replace(self.found[-1], log_speed=speed)


def steps_of(events: Iterable[ev.Event]) -> tuple[Step, ...]:
    """The steps of a run, from its log."""
    state, steps = State(), Steps()
    for event in events:
        state = apply(state, event)
        steps.see(event, state)
    return tuple(steps.found)
