"""compare: two runs of one task on one kind of device, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch.comparing import RunFacts
    from ksearch.types import Ratio

BAR = 24  # characters of the longest bar of the staircase
RunOrFile = Annotated[str, typer.Argument(metavar="RUN|FILE.jsonl")]


def compare(
    first: RunOrFile,
    second: RunOrFile,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Where tasks or devices differ, compare what needs no times.")
    ] = False,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Compare two runs: best, best against evaluations, verdicts, cost, workload by workload.

    Times of different devices, or of different tasks, say nothing about each other: then it refuses.

    \b
    Examples:
      ksearch compare softmax-1 softmax-2
      ksearch compare softmax-1 results/softmax/run.jsonl --json
    """
    from ksearch.cli.opening import opened_run
    from ksearch.comparing import as_json as compared
    from ksearch.comparing import facts, mismatch
    from ksearch.errors import BadInput

    pair = []
    for name in (first, second):
        with opened_run(store, name, readonly=True) as run:
            pair.append(facts(name, run.log()))
    why = mismatch(*pair)
    if why and not anyway:
        raise BadInput(f"{why}. --anyway compares what needs no times")
    if as_json:
        opt.print_json({**compared(pair[0], pair[1], times=why is None), "not_comparable": why})
        return
    if why:
        print(f"no times are compared: {why}\n")
    print(text(pair[0], pair[1], times=why is None))


def text(first: RunFacts, second: RunFacts, *, times: bool = True) -> str:
    """The comparison as tables. Without `times`, nothing that was timed."""
    from ksearch.cli.tables import table

    names = [_name(run.name) for run in (first, second)]
    parts = [table(["", *names], _summary(first, second, times=times))]
    if times and (first.staircase or second.staircase):
        parts.append(_staircase(first, second, names))
    parts.append(table(["verdict", *names], _mix(first, second)))
    if times and (rows := _workloads(first, second)):
        parts.append(table(["best, by workload", *names, "second / first"], rows))
    return "\n\n".join(parts)


def _name(name: str) -> str:
    from ksearch.prompts.text import one_line

    return one_line(name, 40)


def _summary(first: RunFacts, second: RunFacts, *, times: bool) -> list[list[str]]:
    from ksearch.comparing import gain
    from ksearch.prompts.text import plural

    def usd(run: RunFacts) -> str:
        unknown = f" and {plural(run.unpriced, 'call')} of unknown price" if run.unpriced else ""
        return f"${run.usd:.2f}{unknown}"

    pair = (first, second)
    rows = []
    if times:
        best = [run.best.speedup if run.best else None for run in pair]
        rows.append(["best speedup", *map(_ratio, best)])
        ratio = gain(*best)
        rows.append(["second / first", "", _ratio(ratio) if ratio else "-"])
        rows.append(["device", *(_name(", ".join(run.devices) or "-") for run in pair)])
    rows += [
        ["evaluations", *(str(run.evaluations) for run in pair)],
        ["attempts", *(str(run.attempts) for run in pair)],
        ["actions solved", *(str(run.solved) for run in pair)],
        ["model calls", *(str(run.calls) for run in pair)],
        ["tokens", *(f"{run.tokens:,}" for run in pair)],
        ["money", *map(usd, pair)],
        ["working time", *(f"{run.working_minutes:.1f} min" for run in pair)],
        ["status", *(_name(f"ended: {run.ended}" if run.ended else "unfinished") for run in pair)],
    ]
    return rows


def _ratio(value: Ratio | None) -> str:
    from ksearch.prompts.text import ratio

    return ratio(value) if value else "-"


def _staircase(first: RunFacts, second: RunFacts, names: list[str]) -> str:
    """Best speedup after so many evaluations, with bars to one scale."""
    from ksearch.comparing import steps

    top = max(value for run in (first, second) for _, value in run.staircase)
    mark = "#" if opt.plain() else "█"
    lines = ["best speedup after so many evaluations"]
    for name, run in zip(names, (first, second), strict=True):
        lines.append(f"  {name}")
        for count in steps(first, second):
            if count > run.evaluations:
                break
            value = run.best_at(count)
            bar = mark * max(1, round(BAR * value / top)) if value else ""
            lines.append(f"  {count:>6}  {f'{value:.2f}x' if value else '-':>8}  {bar}".rstrip())
    return "\n".join(lines)


def _mix(first: RunFacts, second: RunFacts) -> list[list[str]]:
    pair = (first, second)
    found = {verdict for run in pair for verdict in run.verdicts}
    order = sorted(found, key=lambda verdict: -sum(run.verdicts.get(verdict, 0) for run in pair))
    totals = [max(1, sum(run.verdicts.values())) for run in pair]

    def share(run: RunFacts, verdict: str, total: int) -> str:
        count = run.verdicts.get(verdict, 0)
        return f"{count} ({100 * count / total:.0f}%)" if count else "-"

    return [
        [verdict, *(share(run, verdict, all_) for run, all_ in zip(pair, totals, strict=True))] for verdict in order
    ]


def _workloads(first: RunFacts, second: RunFacts) -> list[list[str]]:
    from ksearch.comparing import workloads

    def cell(ratio: Ratio | None, ms: float | None) -> str:
        return f"{ratio.value:.2f}x  {ms:.4g} ms" if ratio and ms is not None else "-"

    return [
        [_name(row.name), cell(row.first, row.first_ms), cell(row.second, row.second_ms), _ratio(row.gain)]
        for row in workloads(first, second)
    ]
