"""Which of many tasks gets the next part of a shared budget: pure, so that a resumed campaign decides alike.

First each task gets `least` evaluations, in the order of the list. Then each next `share` goes to the task whose last
evaluations paid most: the logarithm of speed gained over its last `share` evaluations, per unit of cost; ties go to
the task that has made the fewest, so those that pay nothing any more take turns. What was begun is finished first.

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
    least: int = 10  # of each task, first
    share: int = 10  # given at a time after that
    unit: Unit = Unit.EVALUATIONS


@dataclass(frozen=True, slots=True)
class Grant:
    task: str
    evaluations: int
    why: str


def rate(standing: Standing, rules: Rules) -> float:
    """Logarithm of speed gained over the last `share` evaluations, per unit of cost."""
    last = standing.steps[-1]
    first = standing.steps[max(0, len(standing.steps) - 1 - rules.share)]
    spent = last.cost(rules.unit) - first.cost(rules.unit)
    gained = max(0.0, last.log_speed - first.log_speed)
    if spent <= 0:  # what costs nothing pays best, if it pays at all
        return math.inf if gained else 0.0
    return gained / spent


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
    best = min(playing, key=lambda s: (-rate(s, rules), s.made))
    paid = rate(best, rules)
    why = f"its last ones paid most: {_words(paid, rules.unit)}" if paid else "no task gains lately: in turn"
    return Grant(best.task, min(rules.share, left), why)


def _begun(standing: Standing, rules: Rules) -> int:
    """What is missing from the part that a task has begun."""
    if standing.made < rules.least:
        return rules.least - standing.made if standing.made else 0
    return -(standing.made - rules.least) % rules.share


def made_by(state: State) -> int:
    """Evaluations that a run has used up. Where attempts come to no evaluation, three of them count as one, as in the
    limit of a single run: else a writer that writes nothing would never be done."""
    return max(state.evaluated, state.attempts // 3)


def _words(paid: float, unit: Unit) -> str:
    per = {Unit.EVALUATIONS: "evaluation", Unit.TOKENS: "1,000 tokens", Unit.USD: "dollar"}[unit]
    scale = 1000 if unit is Unit.TOKENS else 1
    return f"speed {math.expm1(min(paid * scale, 50)):+.1%} per {per}" if math.isfinite(paid) else "at no cost"


def steps_of(events: Iterable[ev.Event]) -> tuple[Step, ...]:
    """What each evaluation of a run had cost and brought, from its log; the first step is its beginning."""
    state, steps = State(), [Step()]
    for event in events:
        state = apply(state, event)
        if isinstance(event, ev.Evaluated):
            steps.append(Step(state.evaluated, state.spent.tokens, usd_committed(state), steps[-1].log_speed))
        elif isinstance(event, ev.Judged) and event.new_best:
            best = state.evaluations[state.best_id or ""].speedup
            steps[-1] = replace(steps[-1], log_speed=max(0.0, math.log(best.value)) if best else 0.0)
    return tuple(steps)
