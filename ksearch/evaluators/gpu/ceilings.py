"""What a GPU can do at most: copies by working-set size, matrix products by precision. About a second to measure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MARGIN = 1.3  # torch's copy and matrix product reach most, not all, of what the GPU can do
SIZES = tuple(1 << n for n in range(18, 32))  # bytes read and written: 256 KiB .. 2 GiB


@dataclass(frozen=True, slots=True)
class GpuCeilings:
    sizes: tuple[int, ...]  # working set in bytes
    bytes_per_s: tuple[float, ...]
    operations_per_s: Mapping[str, float]  # by dtype
    measured_at: float
    precision: str = "tolerance"

    def floor_ms(self, bytes_moved: float, operations: float, threads: int = 1) -> float:
        """The least time that work can take here, in milliseconds."""
        # Small copies are held up by their launch, so a small working set gets the best rate of all larger ones.
        rates = [r for s, r in zip(self.sizes, self.bytes_per_s, strict=True) if 4 * s >= bytes_moved]
        fastest = max(rates, default=self.bytes_per_s[-1])
        return 1e3 * max(bytes_moved / fastest, operations / self.fastest()) / MARGIN

    def fastest(self) -> float:
        """Operations per second in the fastest arithmetic that gives the precision the task asks for."""
        found, half = self.operations_per_s, max(self.operations_per_s[k] for k in ("float16", "bfloat16"))
        if self.precision == "tolerance":
            return max(found.values())
        if self.precision in ("float16", "bfloat16"):
            return half
        if self.precision == "tf32":
            return max(found["tf32"], half / 2)
        if self.precision == "float32":
            return max(found["float32"], half / 3)  # three products of halves can make one of singles
        return max(found["float64"], half / 12)


def parse(data: Mapping[str, Any], precision: str) -> GpuCeilings:
    return GpuCeilings(
        tuple(data["sizes"]), tuple(data["bytes_per_s"]), dict(data["operations_per_s"]),
        float(data["measured_at"]), precision,
    )  # fmt: skip


def measure() -> dict[str, Any]:
    """In the oracle, before anything is timed."""
    import torch

    rates = []
    for size in SIZES:
        source = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        rates.append(size / _seconds(lambda s=source, t=target: t.copy_(s), 10 if size > 1 << 28 else 40))  # type: ignore[misc]
        del source, target
    return {
        "sizes": SIZES, "bytes_per_s": rates, "operations_per_s": _products(), "measured_at": time.time(),
    }  # fmt: skip


def _products() -> dict[str, float]:
    import torch

    found = {}
    for name, dtype, n in (
        ("float16", torch.float16, 8192), ("bfloat16", torch.bfloat16, 8192), ("tf32", torch.float32, 4096),
        ("float32", torch.float32, 4096), ("float64", torch.float64, 4096),
    ):  # fmt: skip
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        left = torch.randn(n, n, device="cuda").to(dtype)
        found[name] = 2.0 * n**3 / _seconds(lambda a=left: a @ a, 5)  # type: ignore[misc]
    torch.backends.cuda.matmul.allow_tf32 = False
    if torch.cuda.get_device_capability() >= (8, 9):
        found["float8"] = 2.0 * max(found["float16"], found["bfloat16"])  # of every GPU so far; not measured
    return found


def _seconds(step: Callable[[], object], repeats: int) -> float:
    import torch

    for _ in range(3):
        step()
    best = math.inf
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            step()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / repeats / 1e3)
    return best
