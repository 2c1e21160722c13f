"""What this machine can do at most: memory traffic per working-set size, and arithmetic. Measured, then cached.

Traffic is measured as calls are timed: buffers at other addresses each time, put out of all caches before. The
fastest of several ways of reading, copying and writing counts, in the fastest of many calls. A floor made from that
must never call an honest kernel too fast, so each ceiling has a margin on top; and since a busy machine shows less
than it can do, several runs are taken on different occasions, and the best of them counts.
"""

from __future__ import annotations

import bisect
import ctypes
import json
import mmap
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ksearch.evaluators import machine

MARGIN = 1.2  # the best ways that we know reach most, not all, of what the machine can do
MAX_AGE_S = 14 * 86400
RUNS = 3  # on so many occasions they are measured, until they are believed
SIZES = tuple(1 << n for n in range(12, 25, 2))  # bytes: 4 KiB .. 16 MiB; beyond, it only gets slower
SIZE_NS = 40_000_000  # spent on each size
SETS = 4
TRIES = 200  # of the arithmetic, some 0.1 ms each


@dataclass(frozen=True, slots=True)
class Ceilings:
    sizes: tuple[int, ...]  # working set in bytes
    bytes_per_s: tuple[float, ...]  # for each size, read and write traffic counted
    operations_per_s: float  # one core, float32, a multiply-add counted as two
    measured_at: float  # Unix time
    flushed: bool = False  # measured on data that was in no cache; else (no compiler here) warm, hence too high
    runs: int = 1

    def floor_ms(self, bytes_moved: float, operations: float, threads: int = 1) -> float:
        """The least time that work can take here, in milliseconds."""
        at = min(bisect.bisect_left(self.sizes, bytes_moved), len(self.sizes) - 1)
        fastest = max(self.bytes_per_s[max(at - 1, 0) : at + 1]) * threads
        return 1e3 * max(bytes_moved / fastest, operations / (self.operations_per_s * threads)) / MARGIN

    def joined(self, other: Ceilings) -> Ceilings:
        """The best of both: what disturbs a machine only ever lowers what is seen of it."""
        if other.sizes != self.sizes or other.flushed != self.flushed:
            return self
        rates = tuple(map(max, self.bytes_per_s, other.bytes_per_s))
        fastest = max(self.operations_per_s, other.operations_per_s)
        return Ceilings(self.sizes, rates, fastest, self.measured_at, self.flushed, self.runs + other.runs)


def measure(native: ctypes.CDLL | None = None) -> dict[str, Any]:
    """In a process of its own with one thread: about half a second. `native`: the compiled harness."""
    rates = _warm() if native is None else [_flushed(native, size) for size in SIZES]
    operations = max(_products(), 0.0 if native is None else _multiply_adds(native))
    return asdict(Ceilings(SIZES, tuple(rates), operations, time.time(), native is not None))


def _flushed(native: ctypes.CDLL, size: int) -> float:
    """Bytes per second of the fastest way to move `size` bytes."""
    room = max(size, mmap.PAGESIZE)  # half of it for what is written
    with mmap.mmap(-1, 2 * room * SETS) as memory:
        view = (ctypes.c_char * len(memory)).from_buffer(memory)
        ctypes.memset(view, 1, len(memory))
        native.ksearch_stream.restype = ctypes.c_uint64
        number = ctypes.c_int64
        best = native.ksearch_stream(
            ctypes.byref(view), number(2 * room), SETS, number(size), 1, ctypes.c_uint64(SIZE_NS)
        )
        del view
    return float(size / max(best * 1e-9, 1e-9))


def _multiply_adds(native: ctypes.CDLL) -> float:
    native.ksearch_multiply_add.restype = ctypes.c_uint64
    return float(2 * 16 * 12 * 1024 / (max(native.ksearch_multiply_add(TRIES), 1) * 1e-9))


def _warm() -> list[float]:
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
    return rates


def _products() -> float:
    import numpy as np

    n = 384
    left, best = np.ones((n, n), np.float32), float("inf")
    for _ in range(8):
        start = time.perf_counter()
        _ = left @ left
        best = min(best, time.perf_counter() - start)
    return float(2.0 * n**3 / best)


def parse(data: Mapping[str, Any]) -> Ceilings:
    return Ceilings(
        tuple(data["sizes"]), tuple(data["bytes_per_s"]), float(data["operations_per_s"]), float(data["measured_at"]),
        bool(data.get("flushed", False)), int(data.get("runs", 1)),
    )  # fmt: skip


def path(folder: Path) -> Path:
    return folder / "ceilings.json"


def cached(folder: Path) -> Ceilings | None:
    """What was measured on this CPU model not long ago, if anything."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads(path(folder).read_text())
        found = parse(data["ceilings"])
        fresh = 0 <= time.time() - found.measured_at < MAX_AGE_S
        if data["cpu"] == machine.cpu_model() and fresh and found.sizes == SIZES:
            return found
    return None


def keep(folder: Path, found: Ceilings) -> None:
    with suppress(OSError):  # no cache: measured again next time
        folder.mkdir(parents=True, exist_ok=True)
        draft = path(folder).with_suffix(".draft")
        draft.write_text(json.dumps({"cpu": machine.cpu_model(), "ceilings": asdict(found)}))
        draft.replace(path(folder))
