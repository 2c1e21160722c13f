"""mcp: a coding agent drives a search by the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.errors import BadInput

if TYPE_CHECKING:
    from ksearch.mcp.house import Rules

TOKEN = "KSEARCH_MCP_TOKEN"
MIN_TOKEN = 16  # characters


def mcp(
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The run that is meant where an agent names none.")
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="FOLDER", help="A task that agents may search, beside the bundled ones."),
    ] = None,
    any_folder: Annotated[
        bool, typer.Option("--any-folder", help="Agents may name task folders, whose reference.py is then run.")
    ] = False,
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Whether programs are measured here.")] = True,
    lease: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="For how long a request is one agent's.")
    ] = 3600.0,
    http: Annotated[bool, typer.Option("--http", help="Listen on a port, for several agents; default: stdio.")] = False,
    host: Annotated[str, typer.Option(help="Other than loopback, the token is all that protects it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 0,
    called: Annotated[
        list[str] | None,
        typer.Option("--called", metavar="NAME", help="A further host name by which it may be called (a proxy's)."),
    ] = None,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Print the guide for agents (a SKILL.md), and end.")
    ] = False,
    store: opt.StoreOption = None,
) -> None:
    """Serve agents by MCP: they plan and write, programs are measured here.

    Over HTTP an agent needs the token: that in KSEARCH_MCP_TOKEN, else one that is made and printed.

    \b
    Examples:
      ksearch mcp --task ./my-kernel --store runs.db
      claude mcp add ksearch -- ksearch mcp
      KSEARCH_MCP_TOKEN=... ksearch mcp --http --port 8322
      ksearch mcp --instructions > .claude/skills/ksearch/SKILL.md
    """
    if instructions:
        print(_guide(), end="")
        return
    if not http and sys.stdin.isatty():
        raise BadInput("an agent starts this command and talks to it: see docs/agents.md. For a port: --http")
    rules = _rules(run, task or [], any_folder, measure, lease)
    _serve(store, rules, (host, port, tuple(called or ())) if http else None)


def _guide() -> str:
    from importlib import resources

    return resources.files("ksearch.mcp").joinpath("SKILL.md").read_text(encoding="utf-8")


def _rules(run: str | None, tasks: list[str], any_folder: bool, measure: bool, lease_s: float) -> Rules:
    from ksearch.mcp.house import Rules
    from ksearch.tasks import load_task

    loaded = [load_task(Path(folder).absolute()) for folder in tasks]  # a mistake in it is said now
    return Rules(run, {task.name: task.folder for task in loaded}, any_folder, measure, lease_s)


def _serve(store: str | None, rules: Rules, http: tuple[str, int, tuple[str, ...]] | None) -> None:
    from ksearch.cli.opening import opened

    try:
        from ksearch.mcp.house import House
        from ksearch.mcp.serve import Place, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise BadInput(f"agents need {error.name}, which is not installed: pip install 'k-search[mcp]'") from error
    with opened(store) as opened_store:
        if rules.run:
            opened_store.run(rules.run)
        house = House(opened_store, rules)
        try:
            if http:
                serve_http(house, Place(*http), _token(), _started)
            else:
                serve_stdio(house)
        except KeyboardInterrupt:
            say("ended; nothing is lost")
        finally:
            house.close()


def _token() -> str | None:
    """Raises:
    BadInput: it could be guessed.
    """
    given = os.environ.get(TOKEN) or None
    if given and len(given) < MIN_TOKEN:
        raise BadInput(f"{TOKEN} has {len(given)} characters: give it at least {MIN_TOKEN}, or leave it unset")
    return given


def _started(address: str, token: str) -> None:
    given = bool(os.environ.get(TOKEN))
    print(f"agents: {address}", flush=True)
    say(f"token: the one in {TOKEN}" if given else f"token: {token}")
    shown = f"${TOKEN}" if given else token
    say(f'for Claude Code: claude mcp add --transport http ksearch {address} --header "Authorization: Bearer {shown}"')
    say("Ctrl-C ends it; nothing is lost.")
