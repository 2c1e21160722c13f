"""What is measured of one workload, and how its turns become numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksearch.definition import Workload
from ksearch.evaluators import stats


def quick(ns: Sequence[int]) -> float:
    """A turn in one number: the mean of its fastest quarter. What disturbs a machine only ever adds time."""
    return statistics.fmean(sorted(ns)[: max(1, len(ns) // 4)])


@dataclass(slots=True)
class Track:
    """Everything measured of one workload. Times in nanoseconds, one list per turn."""

    workload: Workload
    sets: int
    use: int
    samples: dict[str, list[list[int]]] = field(default_factory=dict)  # subject -> turns -> calls
    outside: dict[str, list[int]] = field(default_factory=dict)
    empty: list[int] = field(default_factory=list)  # turns of the baseline without calls, seen from outside
    waited: dict[str, list[int]] = field(default_factory=dict)  # of each turn: on our clock, but not computing
    logs: dict[str, list[float]] = field(default_factory=dict)  # other subject -> paired log ratios
    reference_s: float = 0.0
    spent_s: float = 0.0
    turns: int = 0
    first: int = 0
    given: set[int] = field(default_factory=set)  # sets that hold values, where they are not to be fresh
    batches: list[dict[str, Any]] = field(default_factory=list)
    end_to_end: bool = False  # a GPU: times are those of queued calls by our clock, launches and all

    def median_ms(self, key: str) -> float:
        return statistics.median(n for turn in self.samples[key] for n in turn) / 1e6

    def quick_ns(self, key: str) -> float:
        """The middle one of the turns' fast quarters: what the ratios are made of."""
        return statistics.median(quick(turn) for turn in self.samples[key])

    def calm(self, key: str, least: int, share: float) -> list[int]:
        """Numbers of the turns of `key` in which it waited least for the processor: a share of them."""
        waited = self.waited[key]
        return sorted(range(len(waited)), key=waited.__getitem__)[: max(least, int(len(waited) * share))]

    @property
    def rounds(self) -> int:
        return len(next(iter(self.logs.values()), ()))

    def half_width(self, rng: np.random.Generator) -> float:
        return max((stats.half_width(v, rng) for v in self.logs.values()), default=math.inf)
