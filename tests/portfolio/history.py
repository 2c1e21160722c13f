"""Evaluations as a run might have recorded them, from speedups per workload."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ksearch.evaluators.machine import cpu_model
from ksearch.types import Evaluation, Ratio, Verdict, WorkloadResult

NOISE = 0.01
Speedups = Mapping[str, float]


def pid(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def ratio(value: float, noise: float = NOISE) -> Ratio:
    return Ratio(value, value * (1 - noise), value * (1 + noise))


def measured(
    id: str,
    speedups: Speedups,
    pairs: Mapping[str, Speedups] | None = None,
    device: str | None = None,
    ms: Speedups | None = None,
) -> Evaluation:
    """One that passed. `pairs`: other program -> workload -> its time / ours. `ms`: where that is not 1 / speedup."""
    rows = tuple(
        WorkloadResult(
            name,
            Verdict.PASSED,
            latency_ms=(ms or {}).get(name, 1 / value),
            speedup=ratio(value),
            against={other: ratio(found[name]) for other, found in (pairs or {}).items()},
        )
        for name, value in speedups.items()
    )
    mean = ratio(sum(speedups.values()) / len(speedups))
    whole = {other: ratio(sum(found.values()) / len(found)) for other, found in (pairs or {}).items()}
    return Evaluation(id, Verdict.PASSED, stage="time", latency_ms=1.0, speedup=mean, against=whole, workloads=rows,
                      device=cpu_model() if device is None else device)  # fmt: skip
