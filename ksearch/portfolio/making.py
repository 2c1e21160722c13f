"""A portfolio from what a run has measured: choice, rule, program, and what it is expected to gain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ksearch.definition import TaskSpec, Workload
from ksearch.portfolio.choosing import SAME, NothingToCombine, PortfolioError, choose, comparable, gain, mean_gain
from ksearch.portfolio.composing import compose, family, seen_axes
from ksearch.portfolio.rule import Rule, find_rule, pick
from ksearch.types import Evaluation, Program, Ratio

Load = Callable[[str], Program]  # by id


@dataclass(frozen=True, slots=True)
class Row:
    """One timed workload: which program it goes to, and how much faster that was than the run's best."""

    workload: str
    axes: Mapping[str, int]
    program_id: str
    best_ms: float | None
    gain: Ratio

    @property
    def same(self) -> bool:
        """It stays with the run's best."""
        return self.gain == SAME


@dataclass(frozen=True, slots=True)
class Portfolio:
    """A composed program, not measured yet. `predicted`: over the run's best, if its parts are as fast as before."""

    program: Program
    rule: Rule
    best_id: str
    rows: tuple[Row, ...]
    predicted: Ratio
    notes: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.program_id for row in self.rows))


def make_portfolio(
    evaluations: Mapping[str, Evaluation],
    best_id: str | None,
    load: Load,
    spec: TaskSpec,
    *,
    at_most: int = 3,
    only: Collection[str] = (),
    portfolios: Collection[str] = (),
) -> Portfolio:
    """Choose among all programs of a run, and compose.

    Args:
        best_id: the run's best, which is to be beaten.
        only: choose among these; empty: among all.
        portfolios: programs that are portfolios themselves, and no part of another.

    Raises:
        NothingToCombine: no two programs together surely beat the best alone.
        PortfolioError: they do, and cannot become one program.
    """
    if best_id is None:
        raise NothingToCombine("no program of the run has passed yet: there is nothing to combine")
    workloads = _timed(evaluations[best_id], spec)
    names = [w.name for w in workloads]
    usable = comparable(evaluations, best_id, names)
    _usable(usable, only)
    mine = {id: done for id, done in usable.items() if id not in portfolios and (not only or id in only)}
    base = _base(mine, usable[best_id], names, spec.mean)
    programs = {id: load(id) for id in mine}
    mine, notes = _of_one_language(mine, programs, base, names, bool(only))
    try:
        choice = choose(mine, base, names, spec.mean, at_most)
    except NothingToCombine as none:
        raise NothingToCombine("; ".join([str(none), *notes])) from None
    rule = find_rule(choice, workloads, seen_axes(spec, programs[base].language))
    chosen = {w.name: pick(rule, w.axes) for w in workloads}
    if len(set(chosen.values())) < 2:
        raise NothingToCombine(
            "the workloads on which another program is faster cannot be told apart by the sizes that a program sees"
        )
    rows = tuple(_row(w, usable[chosen[w.name]], usable[best_id]) for w in workloads)
    program, said = compose(programs, rule, spec)
    notes += [*_contradicted(rows, usable), *said]
    return Portfolio(program, rule, best_id, rows, _predicted(usable[best_id], rows, spec.mean), tuple(notes))


def _timed(best: Evaluation, spec: TaskSpec) -> list[Workload]:
    measured = {w.workload for w in best.workloads if w.speedup}
    return [w for w in spec.workloads if w.timed or w.name in measured]


def _usable(usable: Mapping[str, Evaluation], only: Collection[str]) -> None:
    for id in only:
        if id not in usable:
            raise PortfolioError(f"program {id[:12]} did not pass on the device and workloads of the run's best")


def _base(mine: Mapping[str, Evaluation], best: Evaluation, names: Sequence[str], mean: str) -> str:
    """The program to start from: the run's best, or, where that is no part, the one that comes nearest."""
    if best.program_id in mine:
        return best.program_id
    if not mine:
        raise NothingToCombine("all programs that passed are portfolios already")
    score = {id: mean_gain(best, {n: gain(done, best, n).value for n in names}, mean) for id, done in mine.items()}
    return max(score, key=score.__getitem__)


def _of_one_language(
    mine: Mapping[str, Evaluation], programs: Mapping[str, Program], base: str, names: Sequence[str], named: bool
) -> tuple[dict[str, Evaluation], list[str]]:
    """Those that can become one program with `base`, and the others that would have been of use, in words.

    Raises:
        PortfolioError: a person named some of several languages.
    """
    kind = family(programs[base].language)
    same = {id: done for id, done in mine.items() if family(programs[id].language) == kind}
    kinds = sorted({family(program.language) for program in programs.values()})
    if named and len(kinds) > 1:
        raise PortfolioError(f"programs in {' and '.join(kinds)} cannot become one program: name those of one language")
    told = []
    for id, program in programs.items():
        won = [n for n in names if id not in same and all(gain(mine[id], m, n).faster for m in same.values())]
        if won:
            told.append(
                f"program {id[:12]} in {family(program.language)} is faster on {', '.join(won)}, but cannot be put "
                f"together with {kind}, the language of {base[:12]}"
            )
    return same, told


def _row(workload: Workload, done: Evaluation, best: Evaluation) -> Row:
    before = next(w for w in best.workloads if w.workload == workload.name)
    return Row(workload.name, workload.axes, done.program_id, before.latency_ms, gain(done, best, workload.name))


def _contradicted(rows: Sequence[Row], usable: Mapping[str, Evaluation]) -> list[str]:
    """Gains in pairs that plain times speak against: one of the two measurements was disturbed."""
    told = []
    for row in rows:
        mine = next(w for w in usable[row.program_id].workloads if w.workload == row.workload)
        if row.gain.faster and row.best_ms and mine.latency_ms and row.best_ms < mine.latency_ms:
            told.append(
                f"{row.workload}: {row.gain.value:.3f}x in pairs, but {mine.latency_ms:.4g} ms against the "
                f"{row.best_ms:.4g} ms of the best when that was measured: expect less of it"
            )
    return told


def _predicted(best: Evaluation, rows: Sequence[Row], mean: str) -> Ratio:
    """Value and both ends of the mean gain: the interval takes all workloads at their worst, or best, at once."""
    value, low, high = (
        mean_gain(best, {r.workload: getattr(r.gain, end) for r in rows}, mean) for end in ("value", "low", "high")
    )
    return Ratio(value, min(low, value), max(high, value))
