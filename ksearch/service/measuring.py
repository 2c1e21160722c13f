"""The evaluator of this machine as the drivers want it: a result, and its record as bytes with their hash in it. And
what there is to tell of the machine before a run begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ksearch.definition import Workload
from ksearch.drivers import Measured
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.raypool import RayPool
from ksearch.hardware import read_hardware
from ksearch.protocol import Lost
from ksearch.store import blob_name
from ksearch.types import Program

_GPU = ("capability", "multiprocessors", "l2_bytes", "total_bytes", "torch", "cuda")


@dataclass(frozen=True)
class Bench:
    """Measures here, or wherever `local` does. It must be open."""

    local: LocalEvaluator | RayPool

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        found = self.local.evaluate(program, against)
        if isinstance(found.evaluation, Lost):
            return found.evaluation
        record = json.dumps(found.record, allow_nan=False, sort_keys=True).encode()
        return Measured(replace(found.evaluation, record=blob_name(record)), record)


def machine_facts(local: LocalEvaluator) -> str:
    """What `Machine.sheet` tells, as JSON: CPU, compiler and flags, ceilings, and for each timed workload the
    compulsory work, the floor, what binds it, and a first look at the baseline's time.

    Args:
        local: open.
    """
    bench, spec = local.bench, local.spec
    with timing_lease(bench.lease):  # where the ceilings are not known yet, they are measured now
        ceilings = bench.ceilings()
    facts: dict[str, Any] = {
        "device": bench.device.name,
        "hardware": asdict(replace(read_hardware(), clock_mhz=None)),
        "threads": spec.threads,
        "compilers": _compilers(local),
        "ceilings": asdict(ceilings),  # type: ignore[call-overload]
        "workloads": [_workload(local, w) for w in spec.workloads if w.timed],
    }
    if spec.device == "cuda":
        facts["gpu"] = {key: bench.device.about[key] for key in _GPU if key in bench.device.about}
    return json.dumps(facts, sort_keys=True)


def _compilers(local: LocalEvaluator) -> dict[str, dict[str, str]]:
    """By language: the compiler's version and the command that builds a program."""
    options, device = local.options, local.bench.device
    made = [name for name in local.spec.languages if device.languages.get(name)]
    version = local.compiler_version() if made else ""
    return {name: {"version": version, "command": _command(options, name, local.spec.threads)} for name in made}


def _command(options: EvaluatorOptions, language: str, threads: int) -> str:
    if language == "cuda":
        return " ".join((options.cuda_compiler, *options.cuda_flags))
    return " ".join((options.compiler, *options.compiler_flags, *(("-fopenmp",) if threads > 1 else ())))


def _workload(local: LocalEvaluator, workload: Workload) -> dict[str, Any]:
    spec, ceilings = local.spec, local.bench.ceilings()
    moved, operations = spec.floor(spec.names(workload.axes))
    memory_ms = ceilings.floor_ms(moved, 0, spec.threads) if moved > 0 else 0.0
    arithmetic_ms = ceilings.floor_ms(0, operations, spec.threads) if operations > 0 else 0.0
    floor_ms = max(memory_ms, arithmetic_ms)
    return {
        "name": workload.name,
        "bytes_moved": moved,
        "operations": operations,
        "floor_ms": floor_ms or None,
        "binds": "" if not floor_ms else "memory" if memory_ms >= arithmetic_ms else "arithmetic",
        "baseline_ms": local.baseline_ms.get(workload.name),
    }
