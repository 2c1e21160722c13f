"""MLflow. Where it logs is its own business: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from ksearch.trackers.base import Call, Closed, End, Fact, Measured, Start
from ksearch.trackers.metrics import metrics, stable_id

ID, SEQ = "ksearch.id", "ksearch.seq"
MAX_PARAMS = 100  # in one call
MAX_VALUE = 500  # characters of a parameter


class MlflowTracker:
    """One MLflow run for one run, found again by a tag: told again, it carries on where it was."""

    def __init__(self, run: str, created_at: float) -> None:
        self.client = MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "ksearch"
        known = self.client.get_experiment_by_name(name)
        self.experiment = known.experiment_id if known else self.client.create_experiment(name)
        id = stable_id(run, created_at)
        found = self.client.search_runs([self.experiment], f"tags.`{ID}` = '{id}'", max_results=1)
        if found:
            self.id, self.seen = found[0].info.run_id, int(found[0].data.tags.get(SEQ, "0"))
        else:
            made = self.client.create_run(self.experiment, int(created_at * 1000), {ID: id}, run)
            self.id, self.seen = made.info.run_id, 0
        self.count = 0

    def take(self, fact: Fact) -> None:
        match fact:
            case Start():
                self._parameters(fact)
            case Call() | Measured() | Closed():
                self._log(fact)
            case End():
                self._end(fact)

    def _parameters(self, fact: Start) -> None:
        if self.seen:  # a parameter can be set once
            return
        found = [Param(_key(name), str(value)[:MAX_VALUE]) for name, value in fact.parameters.items()]
        for part in _parts(found, MAX_PARAMS):
            self.client.log_batch(self.id, params=part)

    def _log(self, fact: Call | Measured | Closed) -> None:
        if isinstance(fact, Measured):
            self.count = fact.count
        if fact.seq <= self.seen:
            return
        at = int((fact.at if isinstance(fact, Closed) else fact.ended) * 1000)
        found = [Metric(name, value, at, self.count) for name, value in metrics(fact).items()]
        self.client.log_batch(self.id, metrics=found, tags=[RunTag(SEQ, str(fact.seq))])

    def _end(self, fact: End) -> None:
        for name, value in fact.summary.items():
            self.client.set_tag(self.id, f"ksearch.{name}", str(value))
        self.client.set_tag(self.id, "ksearch.ended", fact.reason or "not ended")
        if fact.reason:
            self.client.set_terminated(self.id, "FINISHED", int(fact.at * 1000))

    def close(self) -> None:
        """Every call has been sent already."""


def _key(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-. /") else "_" for c in name)[:250]


def _parts(found: list[Any], size: int) -> Iterator[list[Any]]:
    return (found[i : i + size] for i in range(0, len(found), size))
