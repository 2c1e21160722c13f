"""track: tell an experiment tracker of a run, from its events; what a crash or an outage left out is there, too."""

from __future__ import annotations

from typing import Annotated

import typer

from ksearch.cli import options as opt


def track(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest run."),
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="TRACKER", help="wandb, mlflow or otel.")] = "",
    store: opt.StoreOption = None,
) -> int:
    """Tell a tracker of a run: W&B, MLflow, or OpenTelemetry by OTLP. Each is an extra with its own variables.

    While a run goes on, `--track NAME` at `ksearch run` (or `track = "NAME"` in the settings) does the same.
    Exit code 1: the tracker did not take everything.

    \b
    Examples:
      ksearch track softmax-1 --to wandb
      MLFLOW_TRACKING_URI=http://localhost:5000 ksearch track softmax-1 --to mlflow
      OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ksearch track softmax-1 --to otel
    """
    from ksearch.cli.boundary import say
    from ksearch.cli.opening import opened_run
    from ksearch.errors import BadInput
    from ksearch.service import tracking

    if not to:
        raise BadInput(f"name a tracker: --to {', --to '.join(tracking.KINDS)}")
    with opened_run(store, run, readonly=True) as found:
        done = tracking.track(found, to, say)
        if done:
            print(f"run {found.id}: {found.seq} events told to {to}")
    return 0 if done else 1
