"""ask, tell, submit: work that goes out by hand, and what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch import events as ev
    from ksearch.protocol import Done, Request, Wait
    from ksearch.run import Run
    from ksearch.service.answering import Told

LEASE_S = 3600.0
KINDS = ("plan", "write", "evaluate")


def ask(
    run: opt.RunArgument = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="plan|write|evaluate", help="Only this kind; may be repeated.")
    ] = None,
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who takes it. Default: login name.")] = None,
    lease: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="For how long nobody else is given it.")
    ] = LEASE_S,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the prompt into a file.")
    ] = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Take the next piece of work and print its prompt. Answer it with `ksearch tell`.

    Exit code 1: there is nothing to hand out now; the message says why.

    \b
    Examples:
      ksearch ask
      ksearch ask softmax-1 --kind plan -o prompt.md
      ksearch ask softmax-1 --as alice --lease 600 --json
    """
    from ksearch.cli.opening import opened_run
    from ksearch.protocol import Request
    from ksearch.service.answering import outside_holder, take_unanswered
    from ksearch.service.beginning import setting

    kinds = _kinds(kind)
    with opened_run(store, run) as found:
        holder = outside_holder(name or opt.login_name())
        got = take_unanswered(found, setting(found.state), holder, kinds, lease, say)
        if not isinstance(got, Request):
            return _nothing(found, got, as_json)
        _print_request(found, got, output, as_json)
        return 0


def _kinds(names: list[str] | None) -> Any:
    from ksearch.protocol import Kind
    from ksearch.search import ALL_KINDS

    for name in names or ():
        if name not in KINDS:
            raise BadInput(f"--kind {name}: must be one of {', '.join(KINDS)}")
    return frozenset(Kind(name) for name in names) if names else ALL_KINDS


def _nothing(run: Run, got: Wait | Done, as_json: bool) -> int:
    from ksearch.protocol import Wait

    waits = isinstance(got, Wait)
    if as_json:
        until = got.until if isinstance(got, Wait) else None
        opt.print_json({"run": run.id, "state": "wait" if waits else "done", "why": got.why, "until": until})
    else:
        say(f"nothing to hand out now: {got.why}" if waits else f"run {run.id} has ended: {got.why}")
    return 1


def _print_request(run: Run, request: Request, output: str | None, as_json: bool) -> None:
    from ksearch.service.answering import describe
    from ksearch.service.prompting import as_text

    pending = run.state.pending[request.id]
    recorded = run.prompt(request.id)
    prompt = as_text(recorded) if recorded else describe(run, request)
    if output:
        opt.write_output(Path(output), prompt.encode())
    if as_json:
        body: dict[str, Any] = {"run": run.id, "state": "request", "id": request.id, "kind": str(request.kind)}
        body |= {"node_id": request.node_id, "program_id": request.program_id, "against": list(request.against)}
        deadline = pending.lease.deadline if pending.lease else None
        opt.print_json({**body, "why": request.why, "deadline": deadline, "prompt": prompt})
        return
    print(f"{request.id} {request.kind} at {request.node_id}" + (f", prompt in {output}" if output else ""))
    if not output:
        print(f"\n{prompt}")
    say(f"answer with: ksearch tell {run.id} {request.id} FILE")


TellArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] REQUEST FILE", show_default=False, help="FILE - is standard input."),
]
Lost = Annotated[
    str | None, typer.Option("--lost", metavar="REASON", help="No answer could be had: ask it again. No FILE.")
]
Finish = Annotated[str, typer.Option(metavar="WORD", help="Why the answer ended, where known: stop, length, refusal.")]
Usd = Annotated[
    float | None, typer.Option(min=0, help="Money it cost. Default: unknown where --model is given, else nothing.")
]
Results = Annotated[
    str | None,
    typer.Option("--results", metavar="FILE", help="Results of a bundle, whole or partial. No REQUEST, no FILE."),
]


def tell(
    args: TellArguments = None,
    lost: Lost = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model that answered, for the record.")] = "",
    finish: Finish = "",
    tokens: Annotated[int, typer.Option(min=0, help="Tokens it cost.")] = 0,
    usd: Usd = None,
    results: Results = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Answer a request. Plans and programs are raw text, as a model wrote it; evaluations are JSON.

    The text is stored before it is read. Exit code 1: recorded, but refused; the reason is shown, and goes into the
    next prompt. The same answer told twice does no harm.

    \b
    Examples:
      ksearch tell r3 answer.md
      ksearch tell softmax-1 r3 - < answer.md
      ksearch tell softmax-1 r4 evaluation.json
      ksearch tell softmax-1 r4 --lost "the GPU is gone"
      ksearch tell softmax-1 --results out/results.jsonl
    """
    from ksearch.cli.bundle import tell_results
    from ksearch.cli.opening import opened_run
    from ksearch.protocol import Cost
    from ksearch.service import answering
    from ksearch.service.beginning import setting

    if results is not None:
        if len(args or []) > 1 or lost is not None:
            raise BadInput("tell takes [RUN] --results FILE: each result names its request itself")
        return tell_results(args[0] if args else None, results, store, as_json)
    run, request_id, file = _tell_arguments(args or [], lost)
    with opened_run(store, run) as found:
        if lost is not None:
            told = answering.tell_lost(found, request_id, lost)
        else:
            raw, at = opt.read_input(file), setting(found.state)
            cost = Cost(tokens, usd if usd is not None or model else 0.0)
            told = answering.tell_raw(
                found, request_id, raw,
                task=at.spec, language=at.config.language, cost=cost, model=model, finish=finish,
            )  # fmt: skip
        return print_told(found, request_id, told, as_json)


def _tell_arguments(args: list[str], lost: str | None) -> tuple[str | None, str, str]:
    rest = args if lost is not None else args[:-1]
    file = "" if lost is not None else "".join(args[-1:])
    if not 1 <= len(rest) <= 2:
        wanted = "[RUN] REQUEST --lost REASON" if lost is not None else "[RUN] REQUEST FILE"
        raise BadInput(f"tell takes {wanted}, got {' '.join(args)!r}")
    return (rest[0] if len(rest) == 2 else None), rest[-1], file


def print_told(run: Run, request_id: str, told: Told, as_json: bool) -> int:
    from ksearch.cli.lines import lines
    from ksearch.codec import encode_event
    from ksearch.service.answering import Outcome

    if as_json:
        events = [encode_event(event) for event in told.events]
        opt.print_json({"run": run.id, "request": request_id, "outcome": str(told.outcome), "events": events})
    elif told.outcome is Outcome.DUPLICATE:
        print(f"{request_id} was answered before: nothing was recorded")
    else:
        print("\n".join(lines(told.events, run.state)))
    return 1 if told.outcome is Outcome.REFUSED else 0


def submit(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Source files, the one to enter first.")],
    node: Annotated[str, typer.Option(metavar="NODE", help="Where it belongs in the tree.")] = "root",
    title: Annotated[str, typer.Option(metavar="TEXT", help="What it does, in one line.")] = "",
    language: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpp, python, triton, cuda. Default: by the file's name.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="Function to call. Default: the task's, else run.")
    ] = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Bring in a program that nobody asked for. It is measured and judged like any other.

    \b
    Examples:
      ksearch submit softmax-1 kernel.cpp
      ksearch submit softmax-1 kernel.cpp util.h --node n3 --title "rows in registers"
    """
    from ksearch.cli.opening import opened_run
    from ksearch.service.beginning import setting
    from ksearch.service.reading import ENTRY_POINT

    with opened_run(store, run) as found:
        at = setting(found.state)
        symbol = entry or (at.spec.entry_point if at.spec else ENTRY_POINT)
        program = _program(files, symbol, language, at.spec.languages if at.spec else ())
        events = found.submit(program, author or opt.login_name(), node, title)
        print_events(found, events, as_json)


def _program(files: list[str], symbol: str, language: str | None, languages: tuple[str, ...]) -> Any:
    from ksearch.replies import canonical_source
    from ksearch.types import Program

    first = Path(files[0]).name
    if language is None:
        by_name = {".cpp": "cpp", ".cc": "cpp", ".cu": "cuda", ".py": "python"}.get(Path(first).suffix)
        language = "triton" if by_name == "python" and "triton" in languages else by_name
    if language is None:
        raise BadInput(f"{first}: its name does not tell the language; say it with --language")
    sources: dict[str, str] = {}
    for name in files:
        if Path(name).name in sources:
            raise BadInput(f"two files are called {Path(name).name}: rename one")
        try:
            sources[Path(name).name] = canonical_source(opt.read_input(name).decode())
        except UnicodeDecodeError as error:
            raise BadInput(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    try:
        return Program(sources, f"{first}::{symbol}", language)
    except ValueError as error:
        raise BadInput(str(error)) from error


def print_events(run: Run, events: list[ev.Event], as_json: bool) -> None:
    from ksearch.cli.lines import lines
    from ksearch.codec import encode_event

    if as_json:
        opt.print_json({"run": run.id, "events": [encode_event(event) for event in events]})
    else:
        print("\n".join(lines(events, run.state)))
