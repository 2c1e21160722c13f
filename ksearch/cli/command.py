"""command RUN VERB: what people say to a run. Each goes into the log with its author."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch import events as ev
    from ksearch.run import Run

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
Node = Annotated[str, typer.Argument(metavar="NODE")]
Reason = Annotated[str, typer.Argument(metavar="[REASON]", show_default=False)]


@app.callback()
def command(context: typer.Context, run: Annotated[str, typer.Argument(metavar="RUN")]) -> None:
    """Say something to a run: pause, resume, stop, pin, unpin, boost, prune, add, budget, note, review.

    \b
    Examples:
      ksearch command softmax-1 pause "lunch"
      ksearch command softmax-1 pin n4
      ksearch command softmax-1 budget --evaluations 60
      ksearch command softmax-1 add "Use AVX2 intrinsics" --parent n2 --value 0.9 --author alice
    """
    context.obj = run


def _say(
    context: typer.Context,
    wanted: ev.Command | Callable[[Run], ev.Command],
    author: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    from ksearch.cli.opening import opened_run
    from ksearch.cli.talk import print_events

    with opened_run(store, context.obj) as found:
        command = wanted(found) if callable(wanted) else wanted
        print_events(found, found.command(command, author or opt.login_name()), as_json)


@app.command()
def pause(
    context: typer.Context,
    reason: Reason = "",
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Hand out nothing new until `resume`. What is out may finish."""
    from ksearch import events as ev

    _say(context, ev.Pause(reason), author, store, as_json)


@app.command()
def resume(
    context: typer.Context,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Let a paused or stopped run go on."""
    from ksearch import events as ev

    _say(context, ev.Resume(), author, store, as_json)


@app.command()
def stop(
    context: typer.Context,
    reason: Reason = "",
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """End the run: what is out may finish, open actions close with their best program."""
    from ksearch import events as ev

    _say(context, ev.Stop(reason), author, store, as_json)


@app.command()
def pin(
    context: typer.Context,
    node: Node,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Work on this open node next."""
    from ksearch import events as ev

    _say(context, ev.Pin(node), author, store, as_json)


@app.command()
def unpin(
    context: typer.Context,
    node: Node,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Take a pin back."""
    from ksearch import events as ev

    _say(context, ev.Pin(node, False), author, store, as_json)


@app.command()
def boost(
    context: typer.Context,
    node: Node,
    value: Annotated[float, typer.Argument(metavar="V")],
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Set the priority V (0 to 1) of an open node."""
    from ksearch import events as ev

    _say(context, ev.Boost(node, value), author, store, as_json)


@app.command()
def prune(
    context: typer.Context,
    node: Node,
    reason: Reason = "",
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Withdraw an open node and all below it."""
    from ksearch import events as ev

    _say(context, ev.PruneNode(node, reason), author, store, as_json)


@app.command()
def add(
    context: typer.Context,
    title: Annotated[str, typer.Argument(metavar="TITLE")],
    parent: Annotated[str, typer.Option(metavar="NODE", help="Under which node.")] = "root",
    value: Annotated[float, typer.Option(help="Priority V, 0 to 1.")] = 0.5,
    rationale: Annotated[str, typer.Option(metavar="TEXT")] = "",
    difficulty: Annotated[int, typer.Option(help="1 (routine) to 5 (research).")] = 3,
    predicted: Annotated[float | None, typer.Option(help="Expected speedup over the parent's program.")] = None,
    enabling: Annotated[bool, typer.Option("--enabling", help="May be slower: its children are to pay off.")] = False,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Put an idea of your own into the tree."""
    from ksearch import events as ev
    from ksearch.errors import BadInput
    from ksearch.types import Action

    try:
        action = Action(title, rationale, difficulty, predicted, enabling=enabling)
    except ValueError as error:
        raise BadInput(str(error)) from error
    _say(context, ev.AddAction(parent, action, value), author, store, as_json)


@app.command()
def budget(
    context: typer.Context,
    evaluations: Annotated[int | None, typer.Option(min=0)] = None,
    attempts: Annotated[int | None, typer.Option(min=0)] = None,
    tokens: Annotated[int | None, typer.Option(min=0)] = None,
    usd: Annotated[float | None, typer.Option(min=0)] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Of working time.")] = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Change limits; what is not named stays as it is. An ended run may go on when there is room again."""
    from ksearch import events as ev
    from ksearch.errors import BadInput

    seconds = None if minutes is None else minutes * 60
    given: dict[str, Any] = {
        "evaluations": evaluations,
        "attempts": attempts,
        "tokens": tokens,
        "usd": usd,
        "seconds": seconds,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise BadInput("name a limit: --evaluations, --attempts, --tokens, --usd or --minutes")
    _say(context, lambda run: ev.SetBudget(replace(run.state.config.budget, **changes)), author, store, as_json)


@app.command()
def note(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    node: Annotated[str | None, typer.Option(metavar="NODE")] = None,
    program: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Leave a remark, which the planner gets to read."""
    from ksearch import events as ev
    from ksearch.cli.opening import whole_program_id

    _say(context, lambda run: ev.Note(text, node, program and whole_program_id(run, program)), author, store, as_json)


@app.command()
def review(
    context: typer.Context,
    program: Annotated[str, typer.Argument(metavar="PROGRAM")],
    accept: Annotated[bool, typer.Option("--accept/--reject", help="Whether its numbers can be believed.")],
    text: Annotated[str, typer.Option(metavar="TEXT")] = "",
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Say whether a program whose numbers look odd is to be believed."""
    from ksearch import events as ev
    from ksearch.cli.opening import whole_program_id

    _say(context, lambda run: ev.Review(whole_program_id(run, program), accept, text), author, store, as_json)
