"""Which program for which workload: a move away from the run's best has to be beyond the noise.

Of two programs that were timed in pairs, the pairs decide. Others are compared both over the baseline and by their
plain times, and the less favourable of the two counts: the baseline of another day may have been slower, and so may the
day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ksearch.errors import KSearchError
from ksearch.types import Evaluation, Ratio, WorkloadResult

SAME = Ratio(1.0, 1.0, 1.0)
Score = Callable[[Mapping[str, str]], float]  # workload -> program


class PortfolioError(KSearchError):
    """No portfolio can be made as it was asked for. The message says why, and what would help."""


class NothingToCombine(PortfolioError):
    """No program of the run surely beats the best of them on any workload: one program is the portfolio."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`assigned`: workload -> program. `equal`: those that are surely no slower there; the rule may use any of them."""

    best_id: str  # of the run: what is to be beaten
    assigned: Mapping[str, str]
    equal: Mapping[str, frozenset[str]]
    over_best: Mapping[str, Mapping[str, Ratio]]  # program -> workload -> the best's time / its time

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.assigned.values()))


def comparable(evaluations: Mapping[str, Evaluation], best_id: str, names: Sequence[str]) -> dict[str, Evaluation]:
    """Programs that passed, on the best's device, with a time for each of these workloads; the best among them.

    Raises:
        PortfolioError: the best itself has no such times.
    """
    device = evaluations[best_id].device
    found = {
        id: done
        for id, done in evaluations.items()
        if done.speedup and done.device == device and set(names) <= {w.workload for w in done.workloads if w.speedup}
    }
    if best_id not in found:
        raise PortfolioError(
            f"the run's best, {best_id[:12]}, was not timed on each of {', '.join(names)}: these workloads are not "
            "those of its task as it is now"
        )
    return found


def gain(mine: Evaluation, other: Evaluation, workload: str) -> Ratio:
    """Other's time / mine on one workload. Both have been timed on it, over the same kind of baseline."""
    if mine.program_id == other.program_id:
        return SAME
    ours, theirs = _of(mine, workload), _of(other, workload)
    if pair := ours.against.get(other.program_id):
        return pair
    if pair := theirs.against.get(mine.program_id):
        return Ratio(1 / pair.value, 1 / pair.high, 1 / pair.low)
    assert ours.speedup is not None
    assert theirs.speedup is not None
    value, low, high = (
        ours.speedup.value / theirs.speedup.value,
        ours.speedup.low / theirs.speedup.high,
        ours.speedup.high / theirs.speedup.low,
    )
    if ours.latency_ms and theirs.latency_ms:
        plain = theirs.latency_ms / ours.latency_ms
        value, low, high = min(value, plain), min(low, plain), max(high, plain)
    return Ratio(value, low, high)


def _of(done: Evaluation, workload: str) -> WorkloadResult:
    return next(w for w in done.workloads if w.workload == workload)


def mean_gain(best: Evaluation, gains: Mapping[str, float], mean: str) -> float:
    """What gains over the best come to in the task's own mean: geometric, or the arithmetic one of the speedups."""
    if mean == "geometric":
        return math.exp(sum(math.log(g) for g in gains.values()) / len(gains))
    speedups = {w.workload: w.speedup.value for w in best.workloads if w.speedup}
    return sum(speedups[name] * g for name, g in gains.items()) / sum(speedups[name] for name in gains)


def choose(
    evaluations: Mapping[str, Evaluation], best_id: str, names: Sequence[str], mean: str, at_most: int
) -> Choice:
    """Add one program after the other, each time the one that helps the mean most, until none surely helps.

    Args:
        evaluations: of the programs that may be used; the run's best need not be one of them, if it is `best_id` here.
        names: the timed workloads.

    Raises:
        NothingToCombine: one program is best everywhere, as far as anybody can tell.
    """
    best, usable = evaluations[best_id], dict(evaluations)
    over = {id: {name: gain(done, best, name) for name in names} for id, done in usable.items()}

    def score(assigned: Mapping[str, str]) -> float:
        return mean_gain(best, {name: over[id][name].value for name, id in assigned.items()}, mean)

    assigned = dict.fromkeys(names, best_id)
    while (step := _step(usable, assigned, at_most, score)) is not None:
        assigned = step
    parts = set(assigned.values())
    if len(parts) < 2:
        raise NothingToCombine(_alone(parts.pop(), best_id, at_most, len(usable)))
    equal = {
        name: frozenset(p for p in parts if p == id or not gain(usable[id], usable[p], name).faster)
        for name, id in assigned.items()
    }
    return Choice(best_id, assigned, equal, {id: over[id] for id in parts})


def _step(
    usable: Mapping[str, Evaluation], assigned: Mapping[str, str], at_most: int, score: Score
) -> dict[str, str] | None:
    """The assignment with one more program, or None where none surely makes it better."""
    best, top = None, score(assigned) * (1 + 1e-9)
    for id, done in usable.items():
        trial = {name: id if gain(done, usable[now], name).faster else now for name, now in assigned.items()}
        if len(set(trial.values())) <= at_most and (value := score(trial)) > top:
            best, top = trial, value
    return best


def _alone(program_id: str, base_id: str, at_most: int, count: int) -> str:
    if at_most < 2:
        return "a portfolio of one program is that program: --at-most 2 or more"
    if count == 1:
        return f"{base_id[:12]} is the only program to choose from: there is nothing to combine it with"
    if program_id != base_id:
        return (
            f"{program_id[:12]} is best everywhere, also against {base_id[:12]}, and needs no portfolio. Where it "
            "is not the run's best yet, other programs of its action are still to be measured"
        )
    return (
        f"{base_id[:12]} is best everywhere: of {count} programs none surely beats it on any workload. Actions that "
        "are aimed at a workload may bring such a program"
    )
