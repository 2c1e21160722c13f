"""Weights & Biases. Where it logs, and as whom, is its own business: WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE."""

from __future__ import annotations

import os
from typing import Any

import wandb

from ksearch.trackers.base import Call, Closed, End, Fact, Measured, Start
from ksearch.trackers.metrics import metrics, stable_id


class WandbTracker:
    """One W&B run for one run, by a stable id: told again, it carries on where it was."""

    def __init__(self, run: str, created_at: float) -> None:
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or "ksearch",
            id=stable_id(run, created_at),
            name=run,
            resume="allow",
            job_type="search",
            settings=wandb.Settings(console="off", disable_git=True, save_code=False, silent=True),
        )
        for name in ("*", "call/*", "workload/*", "action/*", "evaluation/*"):
            self.run.define_metric(name, step_metric="evaluations")
        self.run.define_metric("best_speedup", step_metric="evaluations", summary="max")
        self.evaluations = 0
        # What an earlier telling got to; it must not be drawn twice.
        self.seen = int(self.run.summary.get("ksearch_seq") or 0) if self.run.resumed else 0

    def take(self, fact: Fact) -> None:
        match fact:
            case Start():
                self.run.config.update(dict(fact.parameters), allow_val_change=True)
            case Call() | Measured() | Closed():
                if fact.seq > self.seen:
                    self._log(fact)
            case End():
                self.run.summary.update({**fact.summary, "ended": fact.reason or "not ended"})

    def _log(self, fact: Call | Measured | Closed) -> None:
        if isinstance(fact, Measured):
            self.evaluations = fact.count
        row: dict[str, Any] = {**metrics(fact), "evaluations": self.evaluations}
        if isinstance(fact, Measured):
            row["verdict"] = fact.evaluation.verdict.value
        self.run.log(row)
        self.run.summary["ksearch_seq"] = fact.seq

    def close(self) -> None:
        self.run.finish()
