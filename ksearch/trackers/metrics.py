"""Facts as flat numbers, for trackers that draw curves. The step is the number of evaluations."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from ksearch.trackers.base import Call, Closed, Measured


def metrics(fact: Call | Measured | Closed) -> dict[str, float]:
    """{"speedup": 1.5, ...}; only finite numbers."""
    found: dict[str, Any] = {}
    match fact:
        case Call():
            found = {"call/seconds": fact.ended - fact.began, "call/tokens": fact.tokens, "call/usd": fact.usd}
        case Measured(evaluation=done):
            found = {
                "passed": float(done.speedup is not None),
                "best_speedup": fact.best_speedup,
                "tokens": fact.tokens,
                "usd": fact.usd,
                "evaluation/seconds": done.seconds,
                "latency_ms": done.latency_ms,
            }
            if done.speedup:
                found |= {"speedup": done.speedup.value, "speedup_low": done.speedup.low}
                found |= {f"workload/{_key(w.workload)}": w.speedup.value for w in done.workloads if w.speedup}
        case Closed():
            found = {"action/predicted": fact.predicted, "action/gain": fact.gain}
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def _key(workload: str) -> str:
    """A workload as part of a metric's name: only characters that every tracker takes."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-. ") else "_" for c in workload)[:100]


def stable_id(run: str, created_at: float, length: int = 16) -> str:
    """The same for one run on every day, another for another: its name and the moment when it was begun."""
    return hashlib.sha256(f"{run}\n{created_at!r}".encode()).hexdigest()[:length]
