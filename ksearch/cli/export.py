"""export, import: a run as one file, to ship, to keep beside a paper, to open elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch.run import Run

MEGABYTE = 1024 * 1024


def export(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest run."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: RUN.jsonl, or RUN.html.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="The dashboard, frozen: one page that opens from disk.")] = False,
    max_mb: Annotated[
        int, typer.Option("--max-mb", min=1, max=2000, help="With --html: for sources, samples, prompts, replies.")
    ] = 64,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Write a run into one file: all of it as JSON lines, or with --html as a page for a browser.

    The JSON lines can be looked at (`ksearch show FILE.jsonl`), compared and imported again. The page needs no
    server and no network, and holds the prompts and replies of the run: know whom you send it to.

    \b
    Examples:
      ksearch export softmax-1 -o run.jsonl
      ksearch export softmax-1 --html -o run.html
    """
    from ksearch.cli.opening import opened_run

    with opened_run(store, run, readonly=True) as found:
        path = Path(output or f"{found.id}.{'html' if html else 'jsonl'}")
        notes = _page(found, path, max_mb * MEGABYTE) if html else _lines(found, path)
        size, name, events = path.stat().st_size, found.id, found.seq
    if as_json:
        opt.print_json({"run": name, "events": events, "file": str(path), "bytes": size, "notes": notes})
        return
    print(f"{path}: run {name}, {events} events, {size / MEGABYTE:.1f} MB")
    for note in notes:
        print(note)


def _lines(run: Run, path: Path) -> list[str]:
    from ksearch.errors import BadInput
    from ksearch.store import export_run

    if path.suffix != ".jsonl":
        raise BadInput(
            f"{path}: an exported run's name ends in .jsonl, by which it is known again; a page needs --html"
        )
    export_run(run.store, run.id, path)
    return []


def _page(run: Run, path: Path, max_bytes: int) -> list[str]:
    from ksearch.frozen import frozen_answers, frozen_page

    answers = frozen_answers(run.store, run.id, max_bytes)
    opt.write_output(path, frozen_page(answers).encode("utf-8"))
    return [note for note in answers["snapshot"]["head"]["notes"] if note.startswith("Left out")]


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE.jsonl", help="An exported run.")],
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Take an exported run into the store, every event checked against its hash: all of it or nothing.

    \b
    Examples:
      ksearch import run.jsonl
      ksearch import run.jsonl --store postgresql://...
    """
    from ksearch.cli.opening import opened
    from ksearch.store import import_run

    with opened(store) as opened_store:
        info = import_run(opened_store, file)
        name = opened_store.name
    if as_json:
        opt.print_json({"run": info.id, "events": info.seq})
        return
    print(f"run {info.id} is in {name[0].lower() + name[1:]}: {info.seq} events")
