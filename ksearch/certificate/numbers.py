"""From samples to medians, ratios and intervals: the same code when a certificate is made and when it is checked."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ksearch.evaluators import stats
from ksearch.types import Ratio

if TYPE_CHECKING:
    from numpy.random import Generator

BOOTSTRAP_SEED = 20_260_101
PAIRS = "log(other / own) of a round's two turns; a turn counts as the mean of its fastest quarter of calls"
CENTRE = f"mean of the pairs without the lowest and highest {stats.TRIM:.0%}"
INTERVAL = (
    f"95%: bootstrap over pairs, {stats.RESAMPLES} resamples, percentiles 2.5 and 97.5, widened for few pairs; "
    f"at least {stats.LEAST_HALF_WIDTH} to each side in log"
)
Turns = Sequence[Sequence[float]]


class _Frozen:
    """The legacy stream of NumPy, which is promised never to change: an old certificate stays checkable."""

    def __init__(self, seed: int) -> None:
        self.state = np.random.RandomState(seed)

    def integers(self, low: int, high: int, size: tuple[int, int]) -> Any:
        return self.state.randint(low, high, size)


def frozen(seed: int = BOOTSTRAP_SEED) -> Generator:
    return cast("Generator", _Frozen(seed))


def median_ms(turns: Turns) -> float:
    """Of all calls of all turns."""
    return statistics.median(ms for turn in turns for ms in turn)


def pairs(own: Turns, other: Turns) -> list[float]:
    """Log ratios, other / own.

    Raises:
        ValueError: the two have different numbers of turns.
    """
    least = 1e-6  # 1 ns, the clock's own step
    both = zip(own, other, strict=True)
    return [math.log(max(quick(b), least) / max(quick(a), least)) for a, b in both]


def quick(turn: Sequence[float]) -> float:
    """A turn in one number, as the evaluator takes it: what disturbs a machine only ever adds time."""
    return statistics.fmean(sorted(turn)[: max(1, len(turn) // 4)])


def ratios(logs: Mapping[str, Sequence[float]], mean: str, seed: int) -> tuple[Ratio, dict[str, Ratio]]:
    """(over all workloads, of each workload)."""
    ordered = {name: logs[name] for name in sorted(logs)}
    return stats.combine(ordered, mean, frozen(seed))


def mean_ms(values: Sequence[float], mean: str) -> float:
    return stats.mean_of([max(v, 1e-6) for v in values], mean)
