"""ui: the dashboard in a browser. Reads the store; what is said to a run goes through the core."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from ksearch.cli import options as opt


def ui(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the run written to last."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen. Other than loopback, the token is all that protects it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 0,
    called: Annotated[
        list[str] | None,
        typer.Option("--called", metavar="NAME", help="A further host name by which it may be called (a proxy's)."),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the browser.")] = True,
    view_only: Annotated[bool, typer.Option("--view-only", help="Take no commands.")] = False,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
) -> None:
    """Show runs in the browser, live: tree, programs, workloads, calls, workers.

    \b
    Examples:
      ksearch ui
      ksearch ui softmax-1 --port 8321 --no-open
      ksearch ui results/softmax/run.jsonl
    """
    exported = run is not None and run.endswith(".jsonl")
    place = run if exported and run else _place(store)
    _serve(place, None if exported else run, not (exported or view_only), author, (host, port, called), open_browser)


def _place(store: str | None) -> str:
    from ksearch.cli.opening import store_place

    return store_place(store)


def _serve(
    place: str,
    run: str | None,
    speaks: bool,
    author: str | None,
    at: tuple[str, int, list[str] | None],
    open_browser: bool,
) -> None:
    from ksearch.cli.boundary import say
    from ksearch.cli.opening import opened
    from ksearch.errors import BadInput

    try:
        from ksearch.web.desk import Desk
        from ksearch.web.serve import Place, serve
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the dashboard needs {error.name}, which is not installed: pip install 'k-search[ui]'"
        ) from error
    from ksearch.store import open_store

    def started(address: str) -> None:
        print(f"dashboard: {address}", flush=True)
        say("Ctrl-C ends it; the search does not notice.")
        if open_browser:
            webbrowser.open(address)

    host, port, called = at
    with opened(place, readonly=True) as viewed:
        if run:
            viewed.run(run)
        desk = Desk(viewed, run, (lambda: open_store(place)) if speaks else None, author or opt.login_name())
        try:
            serve(desk, Place(host, port, tuple(called or ())), started)
        except KeyboardInterrupt:
            say("ended")
        finally:
            desk.close()
