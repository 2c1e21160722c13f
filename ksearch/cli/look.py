"""runs, show, status, best: looking at what is kept. Nothing here writes."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch.run import Run
    from ksearch.store import RunInfo, Store

NODE = re.compile(r"root|n\d+")


def runs(store: opt.StoreOption = None, as_json: opt.JsonOption = False) -> None:
    """List the runs of a store.

    \b
    Examples:
      ksearch runs
      ksearch runs --store results.db --json
    """
    from ksearch.cli.opening import opened

    with opened(store, readonly=True) as opened_store:
        rows = [_row(opened_store, info) for info in opened_store.runs()]
    if as_json:
        opt.print_json({"runs": rows})
        return
    if not rows:
        print("no runs yet: `ksearch new` or `ksearch run` begins one")
    width = max((len(row["run"]) for row in rows), default=0)
    for row in rows:
        best = f"best {row['speedup']:.2f}x" if row["speedup"] else "no program passed yet"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["updated_at"]))
        print(f"{row['run']:{width}}  {when}  {row['evaluations']:>4}/{row['limit']}  {best}  {row['status']}")


def _row(store: Store, info: RunInfo) -> dict[str, Any]:
    from ksearch.run import Run

    state = Run(store, info.id).state
    best = state.evaluations.get(state.best_id or "")
    return {
        "run": info.id,
        "task": state.context.get("task"),
        "status": status_of(state.ended, state.paused, info.seq),
        "evaluations": state.evaluated,
        "limit": state.config.budget.evaluations,
        "best": state.best_id,
        "speedup": best.speedup.value if best and best.speedup else None,
        "events": info.seq,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    }


def status_of(ended: str | None, paused: str | None, seq: int = 1) -> str:
    if not seq:
        return "never begun"
    return f"ended: {ended}" if ended else f"paused: {paused}" if paused else "unfinished"


def show(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest unfinished run."),
    ] = None,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", show_default=False, help="Tell its story.")] = None,
    config: Annotated[bool, typer.Option("--config", help="Each setting and where it came from.")] = False,
    events: Annotated[bool, typer.Option("--events", help="The log, event by event.")] = False,
    program: Annotated[str | None, typer.Option("--program", metavar="ID", help="A program's source.")] = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Show a run: its tree, the story of one node, its settings, its log or a program.

    \b
    Examples:
      ksearch show
      ksearch show softmax-1 n3
      ksearch show softmax-1 --config
      ksearch show softmax-1 --program 3f2a
      ksearch show results/softmax/run.jsonl
    """
    from ksearch.cli.opening import opened_run

    if run and node is None and NODE.fullmatch(run):
        run, node = None, run
    with opened_run(store, run, readonly=True) as found:
        if config:
            _show_config(found, as_json)
        elif events:
            _show_events(found, as_json)
        elif program:
            _show_program(found, program, as_json)
        elif node:
            _show_node(found, node, as_json)
        else:
            _show_tree(found, as_json)


def _show_config(run: Run, as_json: bool) -> None:
    from ksearch.codec import encode_event
    from ksearch.config import recorded

    loaded = recorded(run.state.context)
    if loaded is None:  # begun by a program, not by a face: there are the rules only
        values = encode_event(run.log()[0])["config"]
        rows = [(name, value, "the program that began the run") for name, value in values.items()]
    else:
        rows = [(name, value, loaded.origins.get(name, "?")) for name, value in loaded.config.model_dump().items()]
    if as_json:
        opt.print_json({"run": run.id, "config": {n: {"value": v, "origin": o} for n, v, o in rows}})
        return
    for name, value, origin in rows:
        print(f"{name} = {json.dumps(value)}  ({origin})")


def _show_events(run: Run, as_json: bool) -> None:
    from ksearch.cli.lines import event_line
    from ksearch.codec import encode_event
    from ksearch.fold import apply
    from ksearch.state import State

    state = State()
    for number, event in enumerate(run.log(), 1):
        state = apply(state, event)
        if as_json:
            opt.print_json(encode_event(event))
        else:
            when = time.strftime("%H:%M:%S", time.localtime(event.at))
            print(f"{number:5} {when} {event_line(event, state)}")


def _show_program(run: Run, prefix: str, as_json: bool) -> None:
    from ksearch.cli.opening import whole_program_id

    id = whole_program_id(run, prefix)
    program = run.program(id)
    if as_json:
        opt.print_json({"id": id, **json.loads(program.canonical)})
        return
    for path, text in program.sources.items():
        print(f"// {path}  (program {id[:12]}, {program.language}, enter at {program.entry_point})")
        print(text, end="" if text.endswith("\n") else "\n")


def _show_node(run: Run, node_id: str, as_json: bool) -> None:
    from ksearch.errors import BadInput
    from ksearch.service.beginning import log_of
    from ksearch.story import node_story

    if node_id not in run.state.tree:
        raise BadInput(f"run {run.id} has no node {node_id!r}: `ksearch show {run.id}` lists them")
    if as_json:
        opt.print_json(_node_json(run, node_id))
        return
    print(node_story(log_of(run), run.state, node_id, opt.width()))


def _show_tree(run: Run, as_json: bool) -> None:
    from ksearch.views import summary, tree_text

    state = run.state
    if as_json:
        nodes = [_node_json(run, id, attempts=False) for id in state.tree]
        body: dict[str, Any] = {"run": run.id, "status": status_of(state.ended, state.paused), "best": state.best_id}
        body |= {"evaluations": state.evaluated, "attempts": state.attempts, "tokens": state.spent.tokens}
        opt.print_json({**body, "usd": state.spent.usd, "unpriced_calls": state.unpriced, "nodes": nodes})
        return
    print(f"run     {run.id}")
    print(f"{summary(state, opt.width())}\n")
    print(tree_text(state, opt.width(), color=opt.colour(), ascii=opt.plain()))


def _node_json(run: Run, node_id: str, *, attempts: bool = True) -> dict[str, Any]:
    from dataclasses import asdict

    from ksearch.history import attempts_at
    from ksearch.service.beginning import log_of

    body = asdict(run.state.tree[node_id])
    if attempts:
        body["tried"] = [asdict(attempt) for attempt in attempts_at(log_of(run), node_id)]
    return body


def status(run: opt.RunArgument = None, store: opt.StoreOption = None, as_json: opt.JsonOption = False) -> None:
    """Show in a few lines where a run stands: status, best, tree, budgets, what is out.

    \b
    Examples:
      ksearch status
      ksearch status softmax-1 --json
    """
    from ksearch.cli.opening import opened_run
    from ksearch.cli.standing import status_json
    from ksearch.views import summary

    with opened_run(store, run, readonly=True) as found:
        if as_json:
            opt.print_json(status_json(found, time.time()))
            return
        print(f"run     {found.id}")
        print(summary(found.state, opt.width()))


def best(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest run."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Write its files here; default: print it.")
    ] = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """The best program of a run, by paired evidence: its sources and its evaluation.

    Exit code 1: no program has passed yet.

    \b
    Examples:
      ksearch best softmax-1
      ksearch best softmax-1 -o out/
    """
    from ksearch.cli.boundary import say
    from ksearch.cli.lines import times
    from ksearch.cli.opening import opened_run
    from ksearch.codec import encode_evaluation
    from ksearch.service.best import best_of

    with opened_run(store, run, readonly=True) as viewed:
        found = best_of(viewed)
        if found is None:
            say(f"run {viewed.id}: no program has passed yet")
            return 1
        written = [str(Path(output, name)) for name in found.files()] if output else []
        for name, data in found.files().items() if output else ():
            opt.write_output(Path(str(output), name), data)
        if as_json:
            body = {"program": json.loads(found.program.canonical), "evaluation": encode_evaluation(found.evaluation)}
            opt.print_json({**found.origin, **body, "files": written})
            return 0
        say(f"run {viewed.id}, node {found.node_id}: {times(found.evaluation.speedup)} over the baseline")
        for path, text in found.program.sources.items() if not output else ():
            print(f"// {path}\n{text}")
        print("\n".join(written), end="\n" if written else "")
        return 0
