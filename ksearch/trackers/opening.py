"""From a name to a tracker. The libraries are extras, imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from ksearch.errors import BadInput
from ksearch.trackers.base import Tracker

KINDS = {"otel": "opentelemetry.sdk", "wandb": "wandb", "mlflow": "mlflow"}


def open_tracker(kind: str, run: str, created_at: float) -> Callable[[], Tracker]:
    """What makes the tracker, once it is called. `created_at` and `run` name the run, here and on every later day.

    Raises:
        BadInput: there is no such kind, or its library is not installed.
    """
    if kind not in KINDS:
        raise BadInput(f"{kind!r} is no tracker: name one of {', '.join(KINDS)}")
    if find_spec(KINDS[kind].partition(".")[0]) is None or (kind == "otel" and find_spec(KINDS[kind]) is None):
        raise BadInput(f"the tracker {kind} needs a library that is not installed: pip install 'k-search[{kind}]'")

    def make() -> Tracker:
        if kind == "otel":
            from ksearch.trackers.otel import otel_tracker

            return otel_tracker(run, created_at)
        if kind == "wandb":
            from ksearch.trackers.wandb import WandbTracker

            return WandbTracker(run, created_at)
        from ksearch.trackers.mlflow import MlflowTracker

        return MlflowTracker(run, created_at)

    return make
