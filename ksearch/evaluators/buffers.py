"""Memory that the oracle owns and shares: one sealed memfd per buffer set, named nowhere, sent by descriptor."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ksearch.definition import TaskSpec, Tensor
from ksearch.evaluators import linux

Array = np.ndarray[Any, Any]
PAGE = 4096
MARGIN = 64  # canary bytes at least behind every tensor
RENEW = 64  # fills from one block of random poison, each from another place in it


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one tensor lies in a set; [offset + nbytes, end) holds canary bytes."""

    tensor: Tensor
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    end: int

    def layout(self) -> dict[str, Any]:
        """What a runner has to know."""
        return {
            "name": self.tensor.name, "dtype": self.tensor.dtype, "shape": list(self.shape),
            "count": math.prod(self.shape), "offset": self.offset,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    size_bytes: int


def lay_out(spec: TaskSpec, axes: Mapping[str, int], stagger: int = 192) -> Layout:
    """Where everything lies. `stagger`: tensor n starts n times so many bytes into its page."""
    names, slots, at = spec.names(axes), [], 0
    for position, tensor in enumerate((*spec.inputs, *spec.outputs)):
        shape = tensor.dims(names)
        nbytes = tensor.size_bytes(names)
        offset = at + stagger * position % PAGE
        at = -(-(offset + nbytes + MARGIN) // PAGE) * PAGE
        slots.append(Slot(tensor, shape, offset, nbytes, at))
    count = len(spec.inputs)
    return Layout(tuple(slots[:count]), tuple(slots[count:]), at)


class BufferSet:
    """One set of inputs and outputs, mapped read-write here and in one runner."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.fd = os.memfd_create("set", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, layout.size_bytes)
        # A runner that shrinks the file would kill the oracle at its next look.
        fcntl.fcntl(self.fd, linux.F_ADD_SEALS, linux.F_SEAL_SHRINK | linux.F_SEAL_GROW | linux.F_SEAL_SEAL)
        self.map = mmap.mmap(self.fd, layout.size_bytes)
        self.bytes = np.frombuffer(self.map, np.uint8)

    def array(self, slot: Slot) -> Array:
        raw = self.bytes[slot.offset : slot.offset + slot.nbytes]
        return raw.view(slot.tensor.dtype).reshape(slot.shape)

    def canary(self, slot: Slot) -> Array:
        return self.bytes[slot.offset + slot.nbytes : slot.end]

    def mark(self, slot: Slot) -> None:
        """Write the canary behind a tensor."""
        self.canary(slot)[:] = canary(slot)

    def marked(self, slot: Slot) -> bool:
        return np.array_equal(self.canary(slot), canary(slot))

    def ranges(self) -> Array:
        """(address, bytes) of every tensor, as the harness's flush takes them."""
        start, slots = self.bytes.ctypes.data, (*self.layout.inputs, *self.layout.outputs)
        return np.array([(start + slot.offset, slot.nbytes) for slot in slots], np.uint64)

    def take_fd(self) -> int:
        """The descriptor, to be sent once and closed by the caller; the mapping stays."""
        fd, self.fd = self.fd, -1
        return fd

    def close(self) -> None:
        del self.bytes
        self.map.close()
        if self.fd >= 0:
            os.close(self.fd)


def canary(slot: Slot) -> Array:
    """What stands behind a tensor."""
    return _pattern(slot.end)[: slot.end - slot.offset - slot.nbytes]


@cache
def _pattern(seed: int) -> Array:
    """Bytes that no kernel writes by chance; they differ from tensor to tensor."""
    return (np.arange(2 * PAGE + MARGIN, dtype=np.uint32) * 2654435761 + seed % (1 << 32) >> 13).astype(np.uint8)


class Poison:
    """Fills outputs so that what is not computed is wrong: NaN of random payload, or plausible random values."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.blocks: dict[tuple[np.dtype[Any], str], Array] = {}
        self.fills = 0

    def fill(self, target: Array, kind: str) -> None:
        self.fills += 1
        if self.fills % RENEW == 0:
            self.blocks.clear()
        block = self.blocks.get((target.dtype, kind))
        if block is None:
            block = self.blocks[target.dtype, kind] = self._block(target.dtype, kind)
        flat = target.reshape(-1)
        at = -int(self.rng.integers(0, block.size))  # never the same pattern twice in one place
        while at < flat.size:
            part = flat[max(at, 0) : at + block.size]
            part[:] = block[max(-at, 0) :][: part.size]
            at += block.size

    def _block(self, dtype: np.dtype[Any], kind: str) -> Array:
        count = 1 << 14
        if dtype.kind == "b":
            return self.rng.integers(0, 2, count).astype(bool)
        if dtype.kind != "f":
            return np.frombuffer(self.rng.bytes(count * dtype.itemsize), dtype)
        if kind == "nan":
            bits = np.frombuffer(self.rng.bytes(count * dtype.itemsize), f"u{dtype.itemsize}").copy()
            exponent = {2: 0x7E00, 4: 0x7FC0_0000, 8: 0x7FF8_0000_0000_0000}[dtype.itemsize]
            bits |= np.array(exponent, bits.dtype)
            return bits.view(dtype)
        return (self.rng.standard_normal(count) * 3 + 0.5).astype(dtype)
