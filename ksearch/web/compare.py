"""Programs by workloads: the heat map, so that a loss on one shape cannot hide behind a good mean."""

from __future__ import annotations

import math
from typing import Any

from ksearch.types import Evaluation
from ksearch.web.reader import RunReader
from ksearch.web.rows import workload_speedups


def heat_map(reader: RunReader, limit: int, order: str) -> dict[str, Any]:
    """Passing programs with their speedup on each workload; `order`: best mean, worst workload, or newest first."""
    state = reader.state
    passed = [(id, done) for id, done in state.evaluations.items() if done.speedup and workload_speedups(done)]
    if order == "newest":
        passed.reverse()
    else:
        passed.sort(key=lambda pair: _key(pair[1], order), reverse=True)
    names = list(dict.fromkeys(w.workload for _, done in passed for w in done.workloads))
    return {"workloads": names, "all": len(passed), "best": state.best_id,
            "rows": [_row(reader, id, done, names) for id, done in passed[:limit]]}  # fmt: skip


def _key(done: Evaluation, order: str) -> float:
    if order == "worst":
        return min(workload_speedups(done))
    return done.speedup.value if done.speedup else 0.0


def _row(reader: RunReader, id: str, done: Evaluation, names: list[str]) -> dict[str, Any]:
    found = {w.workload: w for w in done.workloads}
    cells = [
        [w.speedup.value, w.speedup.low, w.speedup.high, w.latency_ms, w.floor_ms] if w and w.speedup else None
        for w in map(found.get, names)
    ]
    values = workload_speedups(done)
    about = reader.of_program(id)
    return {
        "program": id, "n": about[1]["n"] if about else None, "node": about[1]["node"] if about else None,
        "mean": done.speedup.value if done.speedup else None, "worst": min(values),
        "geomean": math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else None, "cells": cells,
    }  # fmt: skip
