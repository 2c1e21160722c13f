"""The oracle's view of a GPU: torch tensors in memory of its own, shared by CUDA IPC; judged where they lie."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import Any

import torch

from ksearch.definition import Tolerance
from ksearch.evaluators.buffers import RENEW, Layout, Slot, canary
from ksearch.evaluators.compare import Report
from ksearch.evaluators.gpu import ceilings, judging
from ksearch.evaluators.gpu.cuda import Cuda, CudaMemory, view

WORDS = 1 << 22  # 64-bit words hashed together
BLOCK = 1 << 22  # elements of poison made at once
_NAN = {1: 0x7F, 2: 0x7FC0, 4: 0x7FC0_0000, 8: 0x7FF8_0000_0000_0000}
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bytes_of(value: torch.Tensor) -> torch.Tensor:
    return value.reshape(-1).view(torch.uint8)


class GpuSet:
    """One set of inputs and outputs in one allocation: all of it is meant for the same runner."""

    def __init__(self, cuda: Cuda, layout: Layout, patterns: dict[tuple[int, int], torch.Tensor]) -> None:
        self._cuda, self._patterns = cuda, patterns
        self.address = cuda.allocate(layout.size_bytes)
        self.bytes = view(self.address, layout.size_bytes)

    def array(self, slot: Slot) -> torch.Tensor:
        raw = self.bytes[slot.offset : slot.offset + slot.nbytes]
        return raw.view(getattr(torch, slot.tensor.dtype)).view(slot.shape)

    def _canary(self, slot: Slot) -> tuple[torch.Tensor, torch.Tensor]:
        key = slot.end, slot.end - slot.offset - slot.nbytes
        if key not in self._patterns:
            self._patterns[key] = torch.from_numpy(canary(slot)).cuda()
        return self.bytes[slot.offset + slot.nbytes : slot.end], self._patterns[key]

    def mark(self, slot: Slot) -> None:
        there, pattern = self._canary(slot)
        there.copy_(pattern)

    def marked(self, slot: Slot) -> bool:
        return bool(torch.equal(*self._canary(slot)))

    def sound(self, slot: Slot) -> torch.Tensor:
        """`marked`, as a tensor of one element."""
        there, pattern = self._canary(slot)
        return (there == pattern).all()

    def close(self) -> None:
        del self.bytes
        self._cuda.free(self.address)


class Gpu:
    """A GPU, as `host.Memory`."""

    stagger = 512  # what CUDA's own allocations are aligned to: programs may rely on it

    def __init__(self) -> None:
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.cuda = Cuda()
        self.random = torch.Generator("cuda")
        self.random.manual_seed(self.seed())
        self.blocks: dict[tuple[torch.dtype, str], torch.Tensor] = {}
        self.fills = 0
        self.patterns: dict[tuple[int, int], torch.Tensor] = {}
        # Secret weights: whoever does not know them cannot change inputs and keep their sum.
        self.weights = torch.empty(WORDS, dtype=torch.int64, device="cuda").random_(generator=self.random) * 2 + 1
        self.step = int.from_bytes(os.urandom(8)) >> 1 | 1

    def make(self, layout: Layout, count: int) -> tuple[Sequence[GpuSet], dict[str, Any], list[int]]:
        made = [self._set(layout) for _ in range(count)]
        return made, {"handles": [self.cuda.handle(s.address) for s in made]}, []

    def _set(self, layout: Layout) -> GpuSet:
        try:
            return GpuSet(self.cuda, layout, self.patterns)
        except CudaMemory:
            self._give_back()
            return GpuSet(self.cuda, layout, self.patterns)

    def _give_back(self) -> None:
        """What torch keeps for later use is of no use to the other processes."""
        gc.collect()
        torch.cuda.empty_cache()

    def seed(self) -> int:
        return int.from_bytes(os.urandom(8)) >> 1

    def generator(self, seed: int) -> torch.Generator:
        made = torch.Generator("cuda")
        made.manual_seed(seed)
        return made

    def own(self, value: Any) -> torch.Tensor:
        return torch.as_tensor(value, device="cuda").detach().contiguous()

    def copy(self, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    def dtype(self, value: torch.Tensor) -> str:
        return str(value.dtype).removeprefix("torch.")

    def keep(self, values: Sequence[torch.Tensor]) -> list[Any]:
        """Hashes: copies of inputs would take too much of a GPU's memory."""
        return [self.hash(v) for v in values]

    def recall(self, kept: Sequence[Any]) -> None:
        return None

    def hash(self, value: torch.Tensor) -> torch.Tensor:
        """64 bits over every byte and its place; a tensor of one element, so that nobody has to wait for it."""
        raw = bytes_of(value.clone() if value.data_ptr() % 8 else value)
        whole = raw.numel() // 8 * 8
        words, total = raw[:whole].view(torch.int64), torch.zeros((), dtype=torch.int64, device="cuda")
        for start in range(0, words.numel(), WORDS):
            part = words[start : start + WORDS]
            total = total * self.step + (part * self.weights[: part.numel()]).sum()
        if whole < raw.numel():
            total = total * self.step + (raw[whole:].to(torch.int64) * self.weights[: raw.numel() - whole]).sum()
        return total

    def unchanged(self, value: torch.Tensor, kept: Any) -> bool:
        return bool(self.hash(value) == kept)

    def same(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        return bool(torch.equal(bytes_of(one), bytes_of(other)))

    def poison(self, target: torch.Tensor, kind: str) -> None:
        """NaN of random payload, or plausible random values."""
        flat = target.reshape(-1)
        if flat.numel() == 0:
            return
        if target.dtype == torch.bool:
            flat.view(torch.uint8).random_(0, 2, generator=self.random)
        elif not target.dtype.is_floating_point:
            flat.view(_INTEGER[target.element_size()]).random_(generator=self.random)
        else:
            self._lay(flat, self._block(target.dtype, kind))

    def _lay(self, flat: torch.Tensor, block: torch.Tensor) -> None:
        """Fill from one block of random poison, each time from another place in it."""
        at = -int.from_bytes(os.urandom(4)) % BLOCK - BLOCK
        while at < flat.numel():
            part = flat[max(at, 0) : at + BLOCK]
            part.copy_(block[max(-at, 0) :][: part.numel()])
            at += BLOCK

    def _block(self, dtype: torch.dtype, kind: str) -> torch.Tensor:
        self.fills += 1
        if self.fills % RENEW == 0:
            self.blocks.clear()
        if (dtype, kind) not in self.blocks:
            drawn = torch.empty(BLOCK, dtype=torch.float32, device="cuda").normal_(0.5, 3, generator=self.random)
            made = drawn.to(dtype)
            if kind == "nan":
                bits = made.view(_INTEGER[made.element_size()])
                bits.random_(generator=self.random)
                bits |= 0x7F if dtype == torch.float8_e4m3fn else _NAN[made.element_size()]
            self.blocks[dtype, kind] = made
        return self.blocks[dtype, kind]

    def clearly_equal(self, got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> bool:
        return judging.clearly_equal(got, expected, tolerance)

    def compare(
        self, got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, *,
        elementwise: bool, norm: bool, non_finite: bool,
    ) -> Report:  # fmt: skip
        return judging.compare(got, expected, tolerance, elementwise=elementwise, norm=norm, non_finite=non_finite)

    def ceilings(self) -> dict[str, Any]:
        found = ceilings.measure()
        self._give_back()
        return found

    def about(self) -> dict[str, Any]:
        """Raises where the GPU no longer computes what it should."""
        x = torch.arange(1, 1025, dtype=torch.float64, device="cuda")
        found = float((x * x).sum())
        if found != 1024 * 1025 * 2049 / 6:
            raise RuntimeError(f"the GPU computes wrong sums: {found}")
        self._give_back()
        free, total = torch.cuda.mem_get_info()
        about = torch.cuda.get_device_properties(0)
        major, minor = torch.cuda.get_device_capability()
        return {
            "name": about.name, "uuid": f"GPU-{about.uuid}", "capability": [major, minor],
            "multiprocessors": about.multi_processor_count, "l2_bytes": about.L2_cache_size,
            "free_bytes": free, "kept_bytes": torch.cuda.memory_reserved(), "total_bytes": total,
            "torch": torch.__version__, "cuda": torch.version.cuda,
        }  # fmt: skip

    def settle(self) -> None:
        torch.cuda.synchronize()
