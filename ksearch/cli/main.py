"""`ksearch`: the entry point. Commands import what they need when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from ksearch import __version__
from ksearch.cli import (
    bundle,
    campaign,
    command,
    compare,
    cost,
    demo,
    doctor,
    export,
    handover,
    look,
    mcp,
    portfolio,
    redteam,
    search,
    talk,
    tasks,
    track,
    ui,
    verify,
    watch,
)
from ksearch.cli.boundary import guarded

app = typer.Typer(
    name="ksearch",
    # Plain text: quicker to show, and the same on a terminal and in a pipe.
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ksearch {__version__}")
        raise typer.Exit


@app.callback()
def ksearch(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find fast, correct kernels: a model plans on a search tree, programs are written, built, checked and timed.

    \b
    Examples:
      ksearch new --task softmax --evaluations 20
      ksearch ask
      ksearch show

    Exit codes: 0 done; 1 done, and the answer is no (a refused reply, nothing to hand out); 2 bad input; 3 store;
    4 run or request; 5 model; 6 evaluator; 70 unexpected; 130 stopped by Ctrl-C.
    """


app.command()(demo.demo)
app.command()(search.new)
app.command()(search.run)
app.command()(search.resume)
app.command()(campaign.campaign)
app.command()(look.runs)
app.command()(look.show)
app.command()(ui.ui)
app.command()(watch.watch)
app.command()(look.status)
app.command()(look.best)
app.command()(cost.cost)
app.command()(compare.compare)
app.command()(export.export)
app.command()(handover.export_kernel)
app.command("import")(export.import_)
app.command()(track.track)
app.command()(demo.replay)
app.command()(talk.ask)
app.command()(talk.tell)
app.command()(talk.submit)
app.command()(portfolio.portfolio)
app.add_typer(command.app, name="command")
app.command()(mcp.mcp)
app.command()(tasks.init)
app.command()(tasks.lint)
app.command()(verify.verify)
app.command()(verify.check_certificate)
app.command()(bundle.bundle)
app.command()(bundle.evaluate)
app.command()(doctor.doctor)
app.command()(redteam.redteam)


def main() -> None:
    raise SystemExit(guarded(lambda: app(standalone_mode=False)))


if __name__ == "__main__":
    main()
