"""What this machine can do at most: memory traffic per working-set size, and arithmetic. Measured, then cached.

A floor made from them must never call an honest kernel too fast, so each ceiling has a margin on top.
"""

from __future__ import annotations

import bisect
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ksearch.evaluators import machine

MARGIN = 1.3  # NumPy's copy and matrix product reach most, not all, of what the machine can do
MAX_AGE_S = 14 * 86400
SIZES = tuple(1 << n for n in range(15, 28, 2))  # bytes: 32 KiB .. 128 MiB


@dataclass(frozen=True, slots=True)
class Ceilings:
    sizes: tuple[int, ...]  # working set in bytes
    bytes_per_s: tuple[float, ...]  # for each size, warm, read and write traffic counted
    operations_per_s: float  # one core, float32, a multiply-add counted as two
    measured_at: float  # Unix time

    def floor_ms(self, bytes_moved: float, operations: float, threads: int = 1) -> float:
        """The least time that work can take here, in milliseconds."""
        at = min(bisect.bisect_left(self.sizes, bytes_moved), len(self.sizes) - 1)
        fastest = max(self.bytes_per_s[max(at - 1, 0) : at + 1]) * threads
        return 1e3 * max(bytes_moved / fastest, operations / (self.operations_per_s * threads)) / MARGIN


def measure() -> dict[str, Any]:
    """In a process of its own with one thread: about half a second."""
    import numpy as np

    rates = []
    for size in SIZES:
        source, target = np.ones(size // 16, np.float64), np.ones(size // 16, np.float64)
        repeats = max(3, (8 << 20) // size)
        best = float("inf")
        for _ in range(4):
            start = time.perf_counter()
            for _ in range(repeats):
                np.copyto(target, source)
            best = min(best, (time.perf_counter() - start) / repeats)
        rates.append(size / best)
    n = 384
    left, best = np.ones((n, n), np.float32), float("inf")
    for _ in range(8):
        start = time.perf_counter()
        _ = left @ left
        best = min(best, time.perf_counter() - start)
    return asdict(Ceilings(SIZES, tuple(rates), 2.0 * n**3 / best, time.time()))


def parse(data: Mapping[str, Any]) -> Ceilings:
    return Ceilings(
        tuple(data["sizes"]), tuple(data["bytes_per_s"]), float(data["operations_per_s"]), float(data["measured_at"])
    )


def path(folder: Path) -> Path:
    return folder / "ceilings.json"


def cached(folder: Path) -> Ceilings | None:
    """What was measured on this CPU model not long ago, if anything."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads(path(folder).read_text())
        found = parse(data["ceilings"])
        if data["cpu"] == machine.cpu_model() and 0 <= time.time() - found.measured_at < MAX_AGE_S:
            return found
    return None


def keep(folder: Path, found: Mapping[str, Any]) -> None:
    with suppress(OSError):  # no cache: measured again next time
        folder.mkdir(parents=True, exist_ok=True)
        draft = path(folder).with_suffix(".draft")
        draft.write_text(json.dumps({"cpu": machine.cpu_model(), "ceilings": found}))
        draft.replace(path(folder))
