"""A rule over the axes that picks the program: thresholds, so that it has an answer for sizes that were never measured.

The rule is the smallest tree of comparisons that gives each timed workload a program as good as the chosen one. Between
two measured sizes it cuts at their geometric mean: a new size goes with the nearer of the two, in log-size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ksearch.definition import Workload
from ksearch.portfolio.choosing import Choice

MOST_LEAVES = 6
Feature = tuple[str, ...]  # axes whose product is compared; one axis as a rule


@dataclass(frozen=True, slots=True)
class Leaf:
    program_id: str
    workloads: tuple[str, ...]  # the timed ones that come here


@dataclass(frozen=True, slots=True)
class Split:
    """`below` where the product of the axes is at most `limit`, else `above`."""

    feature: Feature
    limit: int
    below: Rule
    above: Rule


Rule = Leaf | Split


def leaves(rule: Rule) -> Iterator[Leaf]:
    if isinstance(rule, Leaf):
        yield rule
    else:
        yield from leaves(rule.below)
        yield from leaves(rule.above)


def axes_in(rule: Rule) -> frozenset[str]:
    if isinstance(rule, Leaf):
        return frozenset()
    return frozenset(rule.feature) | axes_in(rule.below) | axes_in(rule.above)


def pick(rule: Rule, axes: Mapping[str, int]) -> str:
    """The program for these sizes."""
    while isinstance(rule, Split):
        rule = rule.below if math.prod(axes[a] for a in rule.feature) <= rule.limit else rule.above
    return rule.program_id


def find_rule(choice: Choice, workloads: Sequence[Workload], visible: Sequence[str]) -> Rule:
    """The smallest rule for this choice over the axes that the program can see.

    Workloads that look the same through these axes share a program, the better one for them together.
    """
    points = _points(choice, workloads, visible)
    for strict in (True, False):  # a rule of more leaves than anybody would read gives way to a shorter, less exact one
        search = _Search(points, visible, choice.programs, strict)
        for count in range(1, min(len(points), MOST_LEAVES) + 1):
            if (found := search.best(tuple(range(len(points))), count)) and (strict or count == MOST_LEAVES):
                return found.rule
    raise AssertionError("a rule that may be inexact always exists")


@dataclass(frozen=True, slots=True)
class _Point:
    """Workloads of the same visible sizes."""

    axes: Mapping[str, int]
    names: tuple[str, ...]
    equal: frozenset[str]  # programs that serve them as well as any
    worth: Mapping[str, float]  # program -> sum of the logarithms of its gains over the run's best


def _points(choice: Choice, workloads: Sequence[Workload], visible: Sequence[str]) -> list[_Point]:
    groups: dict[tuple[int, ...], list[Workload]] = {}
    for workload in workloads:
        groups.setdefault(tuple(workload.axes[a] for a in visible), []).append(workload)
    found = []
    for group in groups.values():
        names = tuple(w.name for w in group)
        worth = {p: sum(math.log(choice.over_best[p][n].value) for n in names) for p in choice.programs}
        equal = frozenset.intersection(*(choice.equal[n] for n in names))
        equal = equal or frozenset({max(choice.programs, key=lambda p: worth[p])})
        found.append(_Point({a: group[0].axes[a] for a in visible}, names, equal, worth))
    return found


@dataclass(frozen=True, slots=True)
class _Found:
    worth: float
    margin: float  # logarithm of the narrowest gap between sizes that a comparison goes through
    rule: Rule

    def beats(self, other: _Found | None) -> bool:
        return other is None or (round(self.worth, 9), self.margin) > (round(other.worth, 9), other.margin)


@dataclass
class _Search:
    points: Sequence[_Point]
    visible: Sequence[str]
    programs: tuple[str, ...]
    strict: bool
    known: dict[tuple[tuple[int, ...], int], _Found | None] = field(default_factory=dict)

    def best(self, at: tuple[int, ...], count: int) -> _Found | None:
        """The best rule of `count` leaves for these points; None: there is none."""
        if (at, count) not in self.known:
            self.known[at, count] = self._leaf(at) if count == 1 else self._split(at, count)
        return self.known[at, count]

    def _leaf(self, at: tuple[int, ...]) -> _Found | None:
        fit = [p for p in self.programs if not self.strict or all(p in self.points[i].equal for i in at)]
        if not fit:
            return None
        worth = {p: sum(self.points[i].worth[p] for i in at) for p in fit}
        program_id = max(fit, key=lambda p: worth[p])
        names = tuple(name for i in at for name in self.points[i].names)
        return _Found(worth[program_id], math.inf, Leaf(program_id, names))

    def _split(self, at: tuple[int, ...], count: int) -> _Found | None:
        best: _Found | None = None
        for feature, limit, gap, below, above in self._cuts(at):
            for left in range(1, count):
                first = self.best(below, left)
                second = self.best(above, count - left) if first else None
                if first and second:
                    margin = min(gap, first.margin, second.margin)
                    rule = Split(feature, limit, first.rule, second.rule)
                    found = _Found(first.worth + second.worth, margin, rule)
                    best = found if found.beats(best) else best
        return best

    def _cuts(self, at: tuple[int, ...]) -> Iterator[tuple[Feature, int, float, tuple[int, ...], tuple[int, ...]]]:
        varying = [a for a in self.visible if len({self.points[i].axes[a] for i in at}) > 1]
        features: list[Feature] = [(a,) for a in varying] + ([tuple(varying)] if len(varying) > 1 else [])
        for feature in features:
            size = {i: math.prod(self.points[i].axes[a] for a in feature) for i in at}
            values = sorted(set(size.values()))
            for low, high in pairwise(values):
                limit = math.isqrt(low * high)
                below, above = (tuple(i for i in at if (size[i] <= limit) is side) for side in (True, False))
                yield feature, limit, math.log(max(high, 1) / max(low, 1)), below, above
