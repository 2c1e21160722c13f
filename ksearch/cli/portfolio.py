"""portfolio: the best programs of a run as one, which dispatches on shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch.portfolio import Portfolio
    from ksearch.run import Run
    from ksearch.service.portfolios import Outcome
    from ksearch.tasks import Task


RunName = Annotated[
    str, typer.Argument(metavar="RUN", show_default=False, help="A run; with --dry-run also an exported .jsonl file.")
]
AtMost = Annotated[int, typer.Option(min=2, help="Programs to combine.")]
Programs = Annotated[
    list[str] | None,
    typer.Option("--program", metavar="ID", help="Choose among these only; give it once for each."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would be; the run stays as it is.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="DIR", help="Write the program here; the run stays as it is.")
]
Elsewhere = Annotated[bool, typer.Option("--elsewhere", help="Submit it; `resume`, or a bundle, measures it.")]
TaskPlace = Annotated[
    str | None, typer.Option("--task", metavar="TASK", help="With --dry-run or -o: where the run's task has moved.")
]


def portfolio(
    name: RunName,
    at_most: AtMost = 3,
    programs: Programs = None,
    dry_run: DryRun = False,
    output: Output = None,
    elsewhere: Elsewhere = False,
    task: TaskPlace = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Combine the programs of a run that are best for some sizes into one that dispatches on shape.

    Programs are chosen by their measured times on each workload, where they surely beat the run's best. What comes out
    is submitted and measured as any program is, and is kept as the run's best only if the interval says that it wins.

    Exit code 0: kept, or still to be measured; 1: there is nothing to combine, or it was not kept.

    \b
    Examples:
      ksearch portfolio softmax-1 --dry-run
      ksearch portfolio softmax-1
      ksearch portfolio softmax-1 --at-most 2 -o softmax_portfolio
      ksearch portfolio results/trimul-h200/run.jsonl --dry-run
    """
    looking = dry_run or output is not None
    if name.endswith(".jsonl") and not looking:
        raise BadInput(f"{name} is a file, and files are not changed: `ksearch import {name}` first, or --dry-run")
    if task and not looking:
        raise BadInput("--task goes with --dry-run or -o: a run goes on with the task that it was begun with")
    from ksearch.cli.opening import opened_run, whole_program_id
    from ksearch.portfolio import NothingToCombine
    from ksearch.service.portfolios import portfolio_of

    with opened_run(store, name, readonly=looking) as run:
        try:
            owner = _task(run, task, looking)
            only = [whole_program_id(run, prefix) for prefix in programs or []]
            made = portfolio_of(run, owner, at_most, only)
        except NothingToCombine as none:
            return _nothing(run, str(none), as_json)
        if not as_json:
            print(_text(made))
        if looking:
            return _written(run, made, output, as_json)
        return _into_run(run, made, author or opt.login_name(), elsewhere, as_json)


def _task(run: Run, place: str | None, looking: bool) -> Task:
    from ksearch.service.beginning import setting
    from ksearch.tasks import load_task

    context = run.state.context
    if looking and (place := place or context.get("task_folder") or context.get("task")):
        return load_task(place)
    found = setting(run.state).task
    if found is None:
        raise BadInput(f"run {run.id} has no task, so nobody knows its workloads: a portfolio needs them")
    return found


def _nothing(run: Run, why: str, as_json: bool) -> int:
    if as_json:
        opt.print_json({"run": run.id, "outcome": "nothing_to_combine", "why": why})
    else:
        print(f"nothing to combine: {why}")
    return 1


def _text(made: Portfolio) -> str:
    from ksearch.cli.lines import times
    from ksearch.cli.tables import number, table
    from ksearch.portfolio.naming import sizes

    rows = [
        [row.workload, sizes(row.axes), row.program_id[:12], number(row.best_ms), "" if row.same else times(row.gain)]
        for row in made.rows
    ]
    if made.program.id == made.best_id:
        return f"the run's best, {made.best_id[:12]}, is this portfolio of {len(made.members)} programs already"
    lines = [
        table(["workload", "sizes", "program", "best's ms", "over the best"], rows, left=3),
        f"portfolio {made.program.id[:12]} of {len(made.members)} programs ({made.program.language})",
        f"predicted: {times(made.predicted)} over the run's best, {made.best_id[:12]}",
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in made.notes)])


def _facts(run: Run, made: Portfolio) -> dict[str, Any]:
    from dataclasses import asdict

    rows = [
        {
            "workload": r.workload,
            "axes": dict(r.axes),
            "program": r.program_id,
            "best_ms": r.best_ms,
            "gain": asdict(r.gain),
        }
        for r in made.rows
    ]
    return {
        "run": run.id, "program": made.program.id, "members": list(made.members), "best": made.best_id,
        "predicted": asdict(made.predicted), "workloads": rows, "notes": list(made.notes),
    }  # fmt: skip


def _written(run: Run, made: Portfolio, output: str | None, as_json: bool) -> int:
    from ksearch.service.portfolios import files

    written: list[str] = []
    if output:
        folder = Path(output)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder} is there already and not empty. Name another folder with -o, or remove it")
        for path, data in files(made, run).items():
            opt.write_output(folder / path, data)
            written.append(str(folder / path))
    if as_json:
        opt.print_json({**_facts(run, made), "outcome": "not_submitted", "files": written})
        return 0
    print("\n".join(written) if written else "nothing was changed: without --dry-run it is submitted and measured")
    if output:
        say(f"nothing was measured: ksearch verify {output}")
    return 0


def _into_run(run: Run, made: Portfolio, author: str, elsewhere: bool, as_json: bool) -> int:
    from ksearch.service.beginning import setting
    from ksearch.service.portfolios import Fate, outcome, submit, why_not_here
    from ksearch.state import measured_or_waiting

    if not measured_or_waiting(run.refresh(), made.program.id) and made.predicted.value <= 1:
        return _nothing(
            run, f"the run's best {made.best_id[:12]} is a portfolio already, and as fast as this one", as_json
        )
    at, new = setting(run.state), submit(run, made, author)
    if not as_json:
        print(f"{'submitted' if new else 'the run has it already'}: program {made.program.id[:12]}")
    if outcome(run, made).fate is Fate.WAITING and not run.state.paused:
        if elsewhere or (why := why_not_here(run, at)):
            say("not measured here" + ("" if elsewhere else f": {why}"))
        else:
            _measured(run, at, made.program.id)
    found = outcome(run, made)
    if as_json:
        from dataclasses import asdict

        over = asdict(found.over) if found.over else None
        opt.print_json({**_facts(run, made), "outcome": str(found.fate), "over": over, "why": found.reason})
    else:
        print(_told(run, found))
    return 0 if found.fate in (Fate.KEPT, Fate.WAITING) else 1


def _measured(run: Run, at: Any, program_id: str) -> None:
    from ksearch.cli.driving import Stop, listening
    from ksearch.service.fleets import measurers
    from ksearch.service.portfolios import measure

    before = [a for c in run.state.cycles.values() for a in c.unresolved if a.program_id not in (None, program_id)]
    say(f"measuring it here{f', after {len(before)} that wait before it' if before else ''}")
    stop = Stop()
    try:
        with listening(stop), measurers(at.config, at.task, say) as found:
            measure(run, found.evaluator, program_id, stop.check, stop.sleep)
    except KeyboardInterrupt:
        say(f"nothing is lost: `ksearch portfolio {run.id}`, or `ksearch resume {run.id}`, measures it")
        raise


def _told(run: Run, found: Outcome) -> str:
    from ksearch.cli.lines import times
    from ksearch.service.portfolios import Fate

    over = f"{times(found.over)} over {(found.over_id or '')[:12]}" if found.over else ""
    match found.fate:
        case Fate.KEPT:
            return f"kept: {over}. It is the best of run {run.id} now"
        case Fate.NOT_KEPT:
            why = over or f"{(found.over_id or '')[:12]} could not be timed beside it"
            return f"not kept: {why}, and the interval has to be above 1. The run's best stays"
        case Fate.FAILED:
            return f"not kept: {found.reason}. The run's best stays"
    reason = f" ({found.reason})" if found.reason else ""
    return f"to be measured{reason}: `ksearch resume {run.id}`, or `ksearch bundle {run.id} -o DIR` for another machine"
