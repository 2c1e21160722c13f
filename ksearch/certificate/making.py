"""From what the evaluator recorded to a certificate."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ksearch
from ksearch.certificate import numbers
from ksearch.certificate.form import FORMAT
from ksearch.certificate.verdict import problems
from ksearch.conditions import Conditions, usable_cores
from ksearch.definition import TaskSpec
from ksearch.evaluators import machine
from ksearch.types import Evaluation, Program, Ratio, WorkloadResult

Body = dict[str, Any]
_GPU = (
    "name", "driver", "torch", "cuda", "sm_mhz", "memory_mhz", "max_sm_mhz", "temperature_c", "power_w",
    "throttle_reasons",
)  # fmt: skip
_MACHINE = ("cpu", "cores", "architecture", "kernel", "last_level_cache_bytes")


@dataclass(frozen=True, slots=True)
class Taken:
    """One program's evaluation with its whole record, as the evaluator gives them."""

    program: Program
    evaluation: Evaluation
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """What all results of one certificate share."""

    spec: TaskSpec
    against: Sequence[Program]
    compiler: str
    flags: Sequence[str]
    time_budget_s: float
    confirm_budget_s: float


def make(setup: Setup, taken: Sequence[Taken], before: Conditions, after: Conditions) -> Body:
    """The certificate as a JSON-able dict, not yet sealed."""
    spec = setup.spec
    everyone = {p.id: p for p in (spec.baseline, *setup.against, *(t.program for t in taken))}
    body: Body = {
        "format": FORMAT,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "task": _task(spec),
        "programs": {id: _program(p) for id, p in everyone.items()},
        "baseline": spec.baseline.id,
        "against": [p.id for p in setup.against],
        "results": [_result(setup, t) for t in taken],
        "machine": {**_machine(before, after), "gpu": _gpu(taken)},
        "toolchain": _toolchain(setup),
        "method": {
            "pairs": numbers.PAIRS, "centre": numbers.CENTRE, "interval": numbers.INTERVAL,
            "bootstrap_seed": numbers.BOOTSTRAP_SEED,
            "time_budget_s": setup.time_budget_s, "confirm_budget_s": setup.confirm_budget_s,
        },
    }  # fmt: skip
    body["problems"] = problems(body)
    body["passed"] = not body["problems"]
    return body


def _task(spec: TaskSpec) -> Body:
    timed = [w.name for w in spec.workloads if w.timed]
    limits = {name: float(value) for name, value in asdict(spec.limits).items()}
    return {
        "name": spec.name, "hash": spec.hash, "mean": spec.mean, "threads": spec.threads,
        "timed": timed, "limits": limits,
    }  # fmt: skip


def _program(program: Program) -> Body:
    hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in program.sources.items()}
    return {
        "language": program.language, "entry_point": program.entry_point,
        "sources": dict(program.sources), "sources_sha256": hashes,
    }  # fmt: skip


def _machine(before: Conditions, after: Conditions) -> Body:
    found = machine.describe()
    body = {name: found[name] for name in _MACHINE}
    conditions = {"before": asdict(before), "after": asdict(after)}
    for one in conditions.values():
        one["clocks_mhz"] = list(one["clocks_mhz"])
    return {**body, "cores": os.cpu_count() or 1, "usable_cores": usable_cores(), **conditions}


def _gpu(taken: Sequence[Taken]) -> Body | None:
    """None for tasks on a CPU."""
    found = taken[-1].record.get("gpu") if taken else None
    if not found:
        return None
    return {name: found.get(name) for name in _GPU} | {name: found.get(name) or "" for name in _GPU[:4]}


def _toolchain(setup: Setup) -> Body:
    import platform

    import numpy as np

    return {
        "compiler": setup.compiler, "flags": list(setup.flags),
        "python": platform.python_version(), "numpy": np.__version__, "ksearch": ksearch.__version__,
    }  # fmt: skip


def _result(setup: Setup, taken: Taken) -> Body:
    done, record = taken.evaluation, taken.record
    build, sandbox = record.get("build") or {}, record.get("sandbox") or {}
    confirmation = record.get("confirm") or {}
    return {
        "program": done.program_id, "verdict": str(done.verdict), "reason": done.reason, "stage": done.stage,
        "log": done.log, "flags": list(done.flags), "confirmed": done.confirmed,
        "unseen_shapes": confirmation.get("unseen", []),
        **_figures(setup, taken),
        "build_command": list(build.get("command", [])), "library_sha256": build.get("library_sha256"),
        "sandbox_level": sandbox.get("level", ""), "sandbox_rungs": list(sandbox.get("rungs", [])),
        "seeds": {"first": record.get("seeds", {}), "confirmation": confirmation.get("seeds", {})},
        "seconds": done.seconds,
    }  # fmt: skip


def _figures(setup: Setup, taken: Taken) -> Body:
    """All numbers of a passing program follow from its samples; a failing one has none."""
    done, spec = taken.evaluation, setup.spec
    if done.speedup is None:
        workloads = [_failed(spec, w) for w in done.workloads]
        return {"latency_ms": None, "speedup": None, "against": {}, "workloads": workloads}
    tracks = taken.record["timing"][-1]["workloads"]
    lanes = {name: _lanes(track["samples_ns"], [p.id for p in setup.against]) for name, track in tracks.items()}
    total, each = over(lanes, 1, spec.mean)
    others = [lane["program"] for lane in next(iter(lanes.values()))[2:]]
    beside = {id: over(lanes, 2 + i, spec.mean) for i, id in enumerate(others)}
    found = {w.workload: w for w in done.workloads}
    rows = []
    for name, own in lanes.items():
        against = {id: as_dict(ratios[1][name]) for id, ratios in beside.items()}
        rows.append(_row(found[name], tracks[name]["axes"], own, as_dict(each[name]), against))
    return {
        "latency_ms": numbers.mean_ms([row["median_ms"] for row in rows], spec.mean),
        "speedup": as_dict(total), "against": {id: as_dict(r[0]) for id, r in beside.items()}, "workloads": rows,
    }  # fmt: skip


def _lanes(samples: Sequence[Mapping[str, Any]], against: Sequence[str]) -> list[Body]:
    """Candidate, baseline, and the programs of the certificate; not the control that does nothing, which bounds Python
    programs."""
    roles = ("candidate", "baseline")
    return [
        {
            "program": one["program"],
            "role": roles[i] if i < 2 else "against",
            "turns": [[ns / 1e6 for ns in turn] for turn in one["turns"]],
        }
        for i, one in enumerate(samples)
        if i < 2 or one["program"] in against
    ]


def over(
    lanes: Mapping[str, Sequence[Mapping[str, Any]]], number: int, mean: str, seed: int = numbers.BOOTSTRAP_SEED
) -> tuple[Ratio, dict[str, Ratio]]:
    """Ratios of lane `number` to the candidate's, over all workloads and of each."""
    logs = {name: numbers.pairs(own[0]["turns"], own[number]["turns"]) for name, own in lanes.items()}
    return numbers.ratios(logs, mean, seed)


def as_dict(ratio: Ratio) -> Body:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}


def _row(
    found: WorkloadResult, axes: Mapping[str, int], lanes: Sequence[Body], speedup: Body, against: Mapping[str, Body]
) -> Body:
    median = numbers.median_ms(lanes[0]["turns"])
    share = found.floor_ms / median if found.floor_ms is not None and median > 0 else None
    return {
        "name": found.workload, "axes": dict(axes), "verdict": str(found.verdict), "reason": found.reason,
        "lanes": list(lanes), "median_ms": median, "baseline_ms": numbers.median_ms(lanes[1]["turns"]),
        "against_ms": {lane["program"]: numbers.median_ms(lane["turns"]) for lane in lanes[2:]},
        "speedup": speedup, "against": dict(against), "floor_ms": found.floor_ms, "floor_share": share,
        "max_abs_error": found.max_abs_error, "max_rel_error": found.max_rel_error,
    }  # fmt: skip


def _failed(spec: TaskSpec, found: WorkloadResult) -> Body:
    """`axes` are empty for a shape that the task does not name: the reason says which."""
    axes = next((dict(w.axes) for w in spec.workloads if w.name == found.workload), {})
    return {
        "name": found.workload, "axes": axes, "verdict": str(found.verdict), "reason": found.reason,
        "lanes": [], "median_ms": None, "baseline_ms": None, "against_ms": {}, "speedup": None, "against": {},
        "floor_ms": None, "floor_share": None,
        "max_abs_error": found.max_abs_error, "max_rel_error": found.max_rel_error,
    }  # fmt: skip
