"""export-kernel: a program on its way into the framework that is to run it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch.tasks import Task
    from ksearch.types import Program


def export_kernel(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|PROGRAM]",
            show_default=False,
            help="A run (its best program), a run's .jsonl file, a folder from `ksearch best`, or a source file. "
            "Default: the latest run.",
        ),
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="flashinfer-bench, gpu-mode or torch-op.")] = "",
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="For a source file, or where the run's task has moved."),
    ] = None,
    program: Annotated[
        str | None, typer.Option(metavar="ID", help="Of a run: this program, instead of the best.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Default: TASK-TARGET in this folder.")
    ] = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Write a program as FlashInfer-Bench, GPU MODE or torch take it.

    \b
    flashinfer-bench  a solution as JSON, for the definition that the task was read from
    gpu-mode          submission.py with custom_kernel(data)
    torch-op          a package with a custom operator: fake kernel, the reference for sizes never tested, tests

    \b
    Examples:
      ksearch export-kernel softmax-1 --to torch-op -o softmax_op
      ksearch export-kernel kernel.cpp --task gemm --to gpu-mode
    """
    from ksearch.exporters import TARGETS, export_program

    if to not in TARGETS:
        raise BadInput(f"--to must be one of {', '.join(TARGETS)}" + (f", got {to!r}" if to else ""))
    found, owner = _program(source, task, program, store)
    made = export_program(found, owner, to, author or opt.login_name())
    written = _write(Path(output or f"{owner.name}-{to}"), made.files)
    if as_json:
        opt.print_json({"program": found.id, "task": owner.name, "target": to, "files": written, "notes": made.notes})
        return
    print("\n".join([f"program {found.id[:12]} ({found.language}) of task {owner.name} for {to}:", *written]))
    measured = f"nothing was measured: ksearch verify {source} --task {task or owner.folder}"
    for note in (*made.notes, *([measured] if source and Path(source).is_file() and not _is_log(source) else [])):
        print(f"note: {note}")


def _is_log(source: str) -> bool:
    return source.endswith(".jsonl")


def _write(folder: Path, files: Mapping[str, str]) -> list[str]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already and not empty. Name another folder with -o, or remove it")
    for name, text in files.items():
        opt.write_output(folder / name, text.encode())
    return [str(folder / name) for name in files]


def _program(source: str | None, task_name: str | None, wanted: str | None, store: str | None) -> tuple[Program, Task]:
    from ksearch.programs import named_program
    from ksearch.service.best import origin_task
    from ksearch.tasks import load_task

    path = Path(source).expanduser() if source else None
    if path is None or _is_log(str(source)) or not (path.exists() or _own(source, task_name)):
        return _of_run(source, task_name, wanted, store)
    if wanted:
        raise BadInput("--program chooses among the programs of a run: name a run, or leave it out")
    place = task_name or origin_task(str(source))
    if place is None:
        raise BadInput(f"{source}: which task is it for? Name it: --task TASK")
    task = load_task(place)
    return named_program(str(source), task), task


def _own(source: str | None, task_name: str | None) -> bool:
    """Whether it names a program of the task itself: `baseline`, or a strong one."""
    from ksearch.programs import BASELINE
    from ksearch.tasks import load_task

    return bool(task_name) and source in (BASELINE, *load_task(str(task_name)).strong)


def _of_run(source: str | None, task_name: str | None, wanted: str | None, store: str | None) -> tuple[Program, Task]:
    from ksearch.cli.opening import opened_run, whole_program_id
    from ksearch.service.best import best_of
    from ksearch.tasks import load_task

    with opened_run(store, source, readonly=True) as run:
        best = best_of(run)
        if wanted:
            program = run.program(whole_program_id(run, wanted))
        elif best is None:
            raise BadInput(f"run {run.id}: no program has passed yet. --program ID names one all the same")
        else:
            program = best.program
        context = run.state.context
        place = task_name or context.get("task_folder") or context.get("task")
        if not place:
            raise BadInput(f"run {run.id} does not say which task it is on. Name it: --task TASK")
        return program, load_task(place)
