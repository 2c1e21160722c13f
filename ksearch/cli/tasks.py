"""init, lint: task folders."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.cli.tables import table
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch.lint import LintReport, Row


def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the task. Default: the folder's.")] = "",
    language: Annotated[str, typer.Option(metavar="NAME", help="Of its baseline: cpp or python.")] = "cpp",
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Make it from a FlashInfer-Bench definition, a GPU MODE folder or a KernelBench file.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="With --from: cpu or cuda. Default: cuda where there is a GPU.")
    ] = "",
    as_json: opt.JsonOption = False,
) -> None:
    """Write a new task folder that is complete and commented: change it into your own task.

    \b
    Examples:
      ksearch init my_kernel
      ksearch init tasks/softmax --name row_softmax --language python
      ksearch init my_gemm --from flashinfer-trace:gemm_n128_k2048
    """
    from ksearch.tasks import init_from, init_task

    if source and name:
        raise BadInput("--from takes the name that the source has: leave out --name, and change it in task.toml")
    task = init_from(source, folder, device) if source else init_task(folder, name, language)
    files = sorted(path.name for path in task.folder.iterdir() if path.is_file())
    if as_json:
        opt.print_json({"task": task.name, "folder": str(task.folder), "files": files})
        return
    print(f"task {task.name} in {task.folder}: {', '.join(files)}")
    say(f"edit them, then look for mistakes with: ksearch lint {folder}")


def lint(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TASK...", show_default=False, help="Folders, bundled tasks, or tasks in another format."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All bundled tasks.")] = False,
    static: Annotated[bool, typer.Option("--reference-only", help="Do not build or run programs.")] = False,
    quiet: opt.QuietOption = False,
    as_json: opt.JsonOption = False,
) -> int:
    """Look for what would make a search on a task worthless: is the reference sound, do wrong programs fail?

    Exit code 1: a check failed.

    \b
    Examples:
      ksearch lint my_kernel
      ksearch lint --all
      ksearch lint flashinfer-trace --reference-only
    """
    from ksearch.lint import lint_folder, local_evaluator
    from ksearch.tasks import bundled_tasks, tasks_of

    names = [*(found for name in tasks or [] for found in tasks_of(name)), *(bundled_tasks() if every else ())]
    if not names:
        raise BadInput(f"name a task folder, a bundled task ({', '.join(bundled_tasks())}), or --all")
    shown = not quiet and not as_json
    reports = []
    for name in dict.fromkeys(names):
        if shown:
            print(f"{name}", flush=True)
        reports.append(lint_folder(name, None if static else local_evaluator, _show if shown else None))
    if as_json:
        opt.print_json({"ok": all(r.ok for r in reports), "tasks": [_json(r) for r in reports]})
    else:
        _print_summary(reports)
    return 0 if all(r.ok for r in reports) else 1


def _show(row: Row) -> None:
    print(f"  {row.status:<7} {row.check}: {row.detail}".rstrip(": "))
    if row.cure:
        print(f"          cure: {row.cure}")
    sys.stdout.flush()


def _json(report: LintReport) -> dict[str, object]:
    rows = [{"check": r.check, "status": str(r.status), "detail": r.detail, "cure": r.cure} for r in report.rows]
    return {"task": report.task, "ok": report.ok, "seconds": report.seconds, "rows": rows}


def _print_summary(reports: list[LintReport]) -> None:
    head = ["task", "verdict", "checks", "failed", "notes", "skipped", "seconds"]
    rows = []
    for report in reports:
        counts = [sum(row.status == status for row in report.rows) for status in ("fail", "note", "skipped")]
        verdict = "ok" if report.ok else "FAILED"
        rows.append([report.task, verdict, str(len(report.rows)), *map(str, counts), f"{report.seconds:.1f}"])
    print(table(head, rows, left=2))
    for report in reports:
        for row in report.failures:
            print(f"FAILED {report.task}: {row.check}: {row.detail}")
