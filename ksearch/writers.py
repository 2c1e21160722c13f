"""Which of several writers is asked for the next program. Pure: the same state gives the same writer.

In turn, or as a bandit: Thompson sampling on gain per cost, which is easy to state and needs no tuning. For each writer
the chance that an attempt brings a gain is drawn from its Beta posterior (uniform prior), so that one with few attempts
is still drawn high now and then; it is multiplied by the size of its gains (mean logarithm, with one gain of the
mean size of all as a prior) and divided by what an attempt with it costs. The draw is seeded by the request's number.

An attempt costs a call and an evaluation. The evaluation counts as much as the average call of all writers, so that
one who writes for nothing (a local model, a subscription) is up to twice as good a buy as an average one that brings
the same, and not infinitely better. Calls are compared in money, or, when the price of any is unknown, in tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from ksearch.state import State, Tally

TRIES = 2  # attempts for each, in turn, before gains count


def choose_writer(state: State) -> str:
    """The writer of the next request; empty where there are not several to choose from."""
    names = state.config.writers
    if not names:
        return ""
    tallies = {name: state.writers.get(name, Tally()) for name in names}
    rarest = min(names, key=lambda name: tallies[name].asked)  # ties to the first named
    if not state.config.bandit or tallies[rarest].asked < TRIES:
        return rarest
    draw = random.Random(f"writer of r{state.asked}")
    usual = _usual_gain(tallies.values())
    paid = costs(tallies)
    drawn = {name: _drawn_gain(tally, usual, draw) / paid[name] for name, tally in tallies.items()}
    return max(names, key=lambda name: drawn[name])


def costs(tallies: dict[str, Tally]) -> dict[str, float]:
    """What an attempt costs with each, in evaluations: 1 and its call, in average calls."""
    known = not any(tally.unpriced for tally in tallies.values())
    paid = {name: tally.usd if known else float(tally.tokens) for name, tally in tallies.items()}
    average = sum(paid.values()) / max(1, sum(tally.asked for tally in tallies.values()))
    if not average:
        return dict.fromkeys(tallies, 1.0)
    return {name: 1 + paid[name] / max(1, tally.asked) / average for name, tally in tallies.items()}


def _drawn_gain(tally: Tally, usual: float, draw: random.Random) -> float:
    chance = draw.betavariate(1 + tally.gains, 1 + tally.judged - tally.gains)
    return chance * (tally.log_gain + usual) / (tally.gains + 1)


def _usual_gain(tallies: Iterable[Tally]) -> float:
    """The mean size of a gain, of all writers together; while there is none, any number serves for all."""
    found = [(tally.log_gain, tally.gains) for tally in tallies]
    gains = sum(count for _, count in found)
    return sum(total for total, _ in found) / gains if gains else 1.0
