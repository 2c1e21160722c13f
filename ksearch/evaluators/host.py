"""The oracle's view of a CPU: NumPy arrays in shared memory. A GPU has its own, `gpu/memory.py`, of the same shape.

What is Any below is an array of the device: `numpy.ndarray` here, `torch.Tensor` there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ksearch.definition import Tensor, Tolerance
from ksearch.evaluators import ceilings, compare
from ksearch.evaluators.buffers import Array, BufferSet, Layout, Poison


class Set(Protocol):
    """One set of inputs and outputs, shared with one runner."""

    def array(self, slot: Any) -> Any: ...
    def mark(self, slot: Any) -> None: ...
    def marked(self, slot: Any) -> bool: ...
    def close(self) -> None: ...


class Memory(Protocol):
    """What the oracle asks of a device."""

    stagger: int

    def make(self, layout: Layout, count: int) -> tuple[Sequence[Set], dict[str, Any], list[int]]: ...
    def seed(self) -> int: ...
    def generator(self, seed: int) -> Any: ...
    def own(self, value: Any) -> Any: ...
    def copy(self, value: Any) -> Any: ...
    def dtype(self, value: Any) -> str: ...
    def keep(self, values: Sequence[Any]) -> list[Any]: ...
    def recall(self, kept: Sequence[Any]) -> Sequence[Any] | None: ...
    def unchanged(self, value: Any, kept: Any) -> bool: ...
    def same(self, one: Any, other: Any) -> bool: ...
    def poison(self, target: Any, kind: str) -> None: ...
    def clearly_equal(self, got: Any, expected: Any, tolerance: Tolerance) -> bool: ...
    def compare(
        self, got: Any, expected: Any, tolerance: Tolerance, *, elementwise: bool, norm: bool, non_finite: bool
    ) -> compare.Report: ...
    def ceilings(self) -> dict[str, Any]: ...
    def about(self) -> dict[str, Any]: ...
    def settle(self) -> None: ...


class Host:
    """A CPU."""

    stagger = 192  # so that tensors do not all start at the same place of a page (cache set conflicts)

    def __init__(self) -> None:
        self._poison = Poison(np.random.default_rng(int.from_bytes(os.urandom(16))))

    def clearly_equal(self, got: Array, expected: Array, tolerance: Tolerance) -> bool:
        return compare.clearly_equal(got, expected, tolerance)

    def compare(
        self, got: Array, expected: Array, tolerance: Tolerance, *, elementwise: bool, norm: bool, non_finite: bool
    ) -> compare.Report:
        return compare.compare(got, expected, tolerance, elementwise=elementwise, norm=norm, non_finite=non_finite)

    def ceilings(self) -> dict[str, Any]:
        return ceilings.measure()

    def poison(self, target: Array, kind: str) -> None:
        self._poison.fill(target, kind)

    def make(self, layout: Layout, count: int) -> tuple[Sequence[Set], dict[str, Any], list[int]]:
        """New buffer sets, what the runner's answer needs besides the layout, and their descriptors."""
        made = [BufferSet(layout) for _ in range(count)]
        return made, {}, [s.take_fd() for s in made]

    def seed(self) -> int:
        return int.from_bytes(os.urandom(16))

    def generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(seed)

    def own(self, value: Any) -> Array:
        """What a task's function returned, as a contiguous array here."""
        return np.asarray(value, order="C")  # ascontiguousarray would give a scalar a dimension

    def copy(self, value: Array) -> Array:
        return value.copy()

    def dtype(self, value: Array) -> str:
        return str(value.dtype)

    def keep(self, values: Sequence[Array]) -> list[Any]:
        """What is remembered of inputs, to know them again."""
        return list(values)

    def recall(self, kept: Sequence[Any]) -> Sequence[Array] | None:
        """The inputs themselves; None: they have to be drawn again."""
        return kept

    def unchanged(self, value: Array, kept: Any) -> bool:
        return self.same(value, kept)

    def same(self, one: Array, other: Array) -> bool:
        """Equal in every bit."""
        a, b = one.reshape(-1).view(np.uint8), np.ascontiguousarray(other).reshape(-1).view(np.uint8)
        whole = a.size // 8 * 8
        if a.ctypes.data % 8 == 0 and b.ctypes.data % 8 == 0 and whole:
            same = np.array_equal(a[:whole].view(np.uint64), b[:whole].view(np.uint64))
            return same and bool(np.array_equal(a[whole:], b[whole:]))
        return bool(np.array_equal(a, b))

    def about(self) -> dict[str, Any]:
        return {}

    def settle(self) -> None:
        """Wait until nothing of ours runs any more."""


def declared(memory: Memory, what: str, values: Any, tensors: tuple[Tensor, ...], names: Any) -> dict[str, Any]:
    """The values as declared, in order.

    Raises:
        ValueError: one is missing, or of another dtype or shape.
    """
    result = {}
    for tensor in tensors:
        if not isinstance(values, dict) or tensor.name not in values:
            raise ValueError(f"{what}() must return a dict with {tensor.name!r}")
        value = memory.own(values[tensor.name])
        shape, dtype = tensor.dims(names), memory.dtype(value)
        if dtype != tensor.dtype or tuple(value.shape) != shape:
            text = f"{what}(): {tensor.name} is {dtype}{list(value.shape)}, declared {tensor.dtype}{list(shape)}"
            raise ValueError(text)
        result[tensor.name] = value
    return result
