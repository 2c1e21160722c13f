"""The whole record of one evaluation: JSON-able, enough to judge the result again without this machine."""

from __future__ import annotations

import hashlib
import platform
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ksearch.evaluators import machine
from ksearch.evaluators.timing import Timer
from ksearch.types import Evaluation

if TYPE_CHECKING:
    from ksearch.evaluators.local import LocalEvaluator
    from ksearch.evaluators.pipeline import Run

FORMAT = 1


def make(evaluator: LocalEvaluator, run: Run, evaluation: Evaluation) -> dict[str, Any]:
    """Everything behind `evaluation`. Seeds are in it, so it is made when the runner is dead."""
    spec, options = evaluator.spec, evaluator.options
    built = run.built
    data: dict[str, Any] = {
        "format": FORMAT, "made_at": time.time(), "task": spec.name, "task_hash": spec.hash,
        "program": run.program.id, "baseline": spec.baseline.id, "against": [p.id for p in run.against],
        "evaluation": asdict(evaluation), "stage_seconds": run.seconds, "machine": machine.describe(),
        "gpu": evaluator.gpu(),
        "load": machine.load(), "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "build": None, "sandbox": None, "timing": [], "errors": dict(run.checker.errors) if run.checker else {},
        "disabled_defences": sorted(options.disabled),
    }  # fmt: skip
    if built is not None:
        data["build"] = {
            "command": list(built.command), "seconds": built.seconds, "log": built.log,
            "compiler": evaluator.compiler_version() if built.command else None,
            "library_sha256": hashlib.sha256(built.data).hexdigest() if built.data else None,
        }  # fmt: skip
    data.update(run.sealed)
    return data


def seal(run: Run) -> None:
    """Take what only living handles know, when the candidate's work is over."""
    subject = run.subject
    if subject is not None and hasattr(subject, "process"):
        run.sealed["sandbox"] = {"level": subject.sandbox, "rungs": subject.process.rungs}
        run.sealed["ready_s"] = subject.started_s
        seeds = subject.seeds()  # kills the runner first
        run.log = subject.log  # now with its last words
        run.sealed["ending"] = subject.process.ending
        run.sealed["seeds"] = seeds
    if run.timer is not None:
        run.sealed.setdefault("timing", []).append(timing(run.timer))


def timing(timer: Timer) -> dict[str, Any]:
    """Every sample of one timing, in nanoseconds."""
    names = {s.key: s.program.id for s in timer.subjects}
    return {
        "candidate": timer.candidate.program.id,
        "workloads": {
            name: {
                "axes": dict(track.workload.axes), "rounds": track.rounds, "calls_per_turn": track.use,
                "buffer_sets": track.sets, "end_to_end": track.end_to_end,
                "samples_ns": [{"program": names[k], "turns": turns} for k, turns in track.samples.items()],
                "turn_outside_ns": [{"program": names[k], "turns": v} for k, v in track.outside.items()],
                "log_ratios": [{"program": names[k], "values": v} for k, v in track.logs.items()],
                "outside_batches": track.batches,
            }
            for name, track in timer.tracks.items()
        },
    }  # fmt: skip
