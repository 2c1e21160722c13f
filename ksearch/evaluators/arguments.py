"""What a runner hands to a program: the buffers of a workload, and the arguments of each call."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

STRIDE = 48  # words per call, at least as many as the harness ever passes
Answer = dict[str, Any]
Call = tuple[int, list[Any], Callable[[], object]]  # set, arguments, what flushes them


@dataclass(frozen=True, slots=True)
class Prepared:
    words: np.ndarray[Any, Any]  # (calls, STRIDE): the arguments
    ranges: np.ndarray[Any, Any]  # (calls, tensors, 2): address and bytes, for the flush
    given: int


class Buffers:
    """The buffer sets of one workload: for each set one mapping that holds all tensors, in order."""

    def __init__(self, order: Answer, fds: list[int]) -> None:
        self.inputs, self.outputs, self.axes = order["inputs"], order["outputs"], order["axes"]
        self.maps: list[mmap.mmap] = []
        self.words = np.zeros((0, STRIDE), np.uint64)
        self.ranges = np.zeros((0, len(self.inputs) + len(self.outputs), 2), np.uint64)
        self.calls: dict[int, Call] = {}
        self.add(order, fds)

    def add(self, order: Answer, fds: list[int]) -> None:
        for fd in fds:
            # Every page is there from the start: no call meets a page fault that another was spared.
            self.maps.append(mmap.mmap(fd, order["bytes"], flags=mmap.MAP_SHARED | mmap.MAP_POPULATE))
            os.close(fd)
        self._prepare(len(self.words))

    def arrays(self, index: int, layouts: list[Answer]) -> list[np.ndarray[Any, Any]]:
        return [
            np.frombuffer(self.maps[index], t["dtype"], t["count"], t["offset"]).reshape(t["shape"]) for t in layouts
        ]

    def prepared(self, sets: list[int]) -> Prepared:
        """Arguments of the calls, made when the sets were: nothing slow may stand between an order and its calls."""
        return Prepared(self.words[sets], self.ranges[sets], len(self.inputs) + len(self.outputs) + len(self.axes))

    def _prepare(self, first: int) -> None:
        arrays = [self.arrays(i, self.inputs + self.outputs) for i in range(first, len(self.maps))]
        words = np.zeros((len(arrays), STRIDE), np.uint64)
        for row, one in zip(words, arrays, strict=True):
            given = [a.ctypes.data for a in one] + [a & (1 << 64) - 1 for a in self.axes]
            row[: len(given)] = given
        self.words = np.concatenate([self.words, words])
        self.ranges = np.concatenate([self.ranges, ranges_of(arrays)])


def address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def ranges_of(sets: list[list[np.ndarray[Any, Any]]]) -> np.ndarray[Any, Any]:
    return np.array([[(a.ctypes.data, a.nbytes) for a in arrays] for arrays in sets], np.uint64)
