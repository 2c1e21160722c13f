"""bundle, evaluate, and `tell --results`: evaluation on another machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch.service.bundling import Received


def bundle(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN] | PROGRAM...", show_default=False, help="Default: the latest unfinished run."),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="A new folder.")] = "",
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="Bundle programs for this task, without a run.")
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option("--against", metavar="PROGRAM", help="With --task: timed beside each of them.")
    ] = None,
    hours: Annotated[float, typer.Option(min=0.01, help="A run asks again for what is not back by then.")] = 24.0,
    again: Annotated[
        bool, typer.Option("--again", help="Of a run: also what an earlier bundle took and did not bring back.")
    ] = False,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Write a folder that measures programs on another machine: it needs Python, NumPy and g++ there, nothing else.

    There: `python3 DIR/evaluate.py`, or `ksearch evaluate DIR`. Back here: `ksearch tell RUN --results FILE`.
    Exit code 1: nothing waits to be measured.

    \b
    Examples:
      ksearch bundle softmax-1 -o out
      ksearch bundle --task gemm fast.cpp baseline --against openblas -o out
    """
    if not output:
        raise BadInput("say where to: -o DIR, a new folder")
    folder = Path(output).expanduser().absolute()
    if task is not None:
        count = _bundle_programs(task, names or [], against or [], folder)
        where = None
    elif against:
        raise BadInput("--against goes with --task: what a run's programs are timed beside, the run knows")
    else:
        where, count = _bundle_run(names or [], folder, hours, again, store)
    if as_json:
        opt.print_json({"folder": str(folder) if count else None, "requests": count, "run": where})
    elif count:
        print(f"{count} to measure in {folder}")
        say(
            f"there: python3 {folder.name}/evaluate.py"
            + (f"; then here: ksearch tell {where} --results FILE" if where else "")
        )
    return 0 if count else 1


def _bundle_programs(task_name: str, names: list[str], against: list[str], folder: Path) -> int:
    from ksearch.evaluators.bundle import Wanted
    from ksearch.programs import named_program
    from ksearch.service.bundling import make_bundle
    from ksearch.tasks import load_task

    if not names:
        raise BadInput("name the programs: ksearch bundle --task TASK PROGRAM... -o DIR")
    task = load_task(task_name)
    programs = {p.id: p for p in (named_program(name, task) for name in names)}
    others = {p.id: p for p in (named_program(name, task) for name in against)}
    wanted = [Wanted(id[:12], p, tuple(o for o in others.values() if o.id != id)) for id, p in programs.items()]
    make_bundle(folder, task, wanted)
    return len(wanted)


def _bundle_run(names: list[str], folder: Path, hours: float, again: bool, store: str | None) -> tuple[str, int]:
    from ksearch.cli.opening import opened_run
    from ksearch.service.bundling import bundle_run

    if len(names) > 1:
        raise BadInput(f"one run at a time, got {' '.join(names)!r}; for programs say --task")
    with opened_run(store, names[0] if names else None) as run:
        requests = bundle_run(run, folder, hours * 3600, again=again)
        if not requests:
            say(f"nothing of run {run.id} waits to be measured now")
        return run.id, len(requests)


def evaluate(
    folder: Annotated[str, typer.Argument(metavar="DIR")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Results, one a line. Default: DIR/results.jsonl."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="GPUs: profile each program that passes, not only a new best.")
    ] = False,
    counters: Annotated[
        bool, typer.Option("--counters", help="GPUs: hardware counters by ncu in profiles; its fence is weaker.")
    ] = False,
    quiet: opt.QuietOption = False,
) -> None:
    """Measure what a bundle asks for. Cut off, it goes on where it stopped; each result is on the disk at once.

    \b
    Examples:
      ksearch evaluate out -o results.jsonl
      ksearch evaluate out --profile --counters
    """
    from ksearch.evaluators.bundle import RESULTS, evaluate_bundle
    from ksearch.evaluators.options import EvaluatorOptions

    place = Path(folder)
    if not (place / "bundle.json").is_file():
        raise BadInput(f"{folder} is no bundle: it holds no bundle.json. `ksearch bundle` writes one")
    results = Path(output) if output else place / RESULTS
    _check_writable(results)
    options = EvaluatorOptions(profile="always" if profile else "best", counters=counters)
    evaluate_bundle(place, options=options, tell=_silent if quiet else _print, results=results)
    print(f"results: {results}")


def _print(text: str) -> None:
    print(text, flush=True)


def _silent(_: str) -> None:
    pass


def _check_writable(path: Path) -> None:
    """Before anything is measured, which may take hours."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}. Name another file with -o") from error


def tell_results(run: str | None, file: str, store: str | None, as_json: bool) -> int:
    """`ksearch tell [RUN] --results FILE`. Exit code 1: a result was refused, or is of a program nobody knows."""
    from ksearch.cli.opening import opened_run
    from ksearch.service.bundling import Fate
    from ksearch.service.bundling import tell_results as tell

    with opened_run(store, run) as found:
        received = tell(found, Path(file))
        if as_json:
            rows = [
                {
                    "program": r.program_id,
                    "fate": str(r.fate),
                    "detail": r.detail,
                    "verdict": r.verdict and str(r.verdict),
                }
                for r in received
            ]
            opt.print_json({"run": found.id, "results": rows})
        else:
            _print_received(found.id, received)
    return 1 if any(r.fate in (Fate.UNKNOWN, Fate.REFUSED) for r in received) else 0


def _print_received(run: str, received: list[Received]) -> None:
    for one in received:
        said = ", ".join(text for text in (str(one.verdict or ""), one.detail) if text)
        print(f"{one.program_id[:12]} {one.fate}{': ' if said else ''}{said}")
    counts = Counter(str(one.fate) for one in received)
    told = ", ".join(f"{count} {fate}" for fate, count in counts.items()) or "no results in the file yet"
    print(f"run {run}: {told}")
