"""Ratios of times from pairs, with an interval that can be believed.

The estimate is the 25% trimmed mean of the paired log ratios: drift cancels within a pair, and a pair that was
disturbed from outside is cut off. The 95% interval is Student's for such a mean, or, where it must not assume a shape
(certificates), a percentile bootstrap over pairs, widened for few pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ksearch.types import Ratio

RESAMPLES = 1000
TRIM = 0.25
LEAST_HALF_WIDTH = 0.001  # in log: two processes never run under exactly the same conditions
Array = np.ndarray[Any, Any]


def estimate(logs: Sequence[float] | Array) -> float:
    """The centre of paired log ratios."""
    return float(_trimmed(np.asarray(logs, np.float64)[None, :])[0])


def _trimmed(rows: Array) -> Array:
    ordered = np.sort(rows, axis=1)
    cut = int(rows.shape[1] * TRIM)
    kept: Array = ordered[:, cut : rows.shape[1] - cut].mean(axis=1)
    return kept


def bootstrap(logs: Sequence[float] | Array, rng: np.random.Generator) -> Array:
    """Centres of `RESAMPLES` resampled sets of pairs, spread out to make up for small numbers."""
    values = np.asarray(logs, np.float64)
    if len(values) < 2:
        return np.full(RESAMPLES, values[0] if len(values) else 0.0)
    draws = _trimmed(values[rng.integers(0, len(values), (RESAMPLES, len(values)))])
    centre = estimate(values)
    # Resampling n pairs knows n - 1 degrees of freedom, and a percentile interval lacks Student's factor.
    wider = math.sqrt(len(values) / (len(values) - 1)) * (1 + 1.6 / len(values))
    spread: Array = centre + (draws - centre) * wider
    return spread


def robust(logs: Sequence[float] | Array, rng: np.random.Generator) -> Array:
    """`RESAMPLES` draws of where the true centre may lie, by Student's distribution for the trimmed mean.

    The spread is that of the pairs with the lowest and highest quarter drawn in to the rest (Tukey and McLaughlin
    1963): one bad round among several does not widen it, as it does in a bootstrap of few pairs.
    """
    values = np.sort(np.asarray(logs, np.float64))
    count = len(values)
    if count < 2:
        return np.full(RESAMPLES, values[0] if count else 0.0)
    cut = int(count * TRIM) if count > 4 else 0
    kept = count - 2 * cut
    drawn_in = np.clip(values, values[cut], values[count - cut - 1])
    error = float(drawn_in.std(ddof=1)) * math.sqrt(count) / kept
    spread: Array = estimate(values) + error * rng.standard_t(kept - 1, RESAMPLES)
    return spread


def half_width(logs: Sequence[float], rng: np.random.Generator) -> float:
    """95% half-width of the centre in log units, to decide whether to go on sampling; infinite below 4 pairs."""
    if len(logs) < 4:
        return math.inf
    low, high = np.percentile(robust(logs, rng), [2.5, 97.5])
    return float(high - low) / 2


def ratio(logs: Sequence[float], rng: np.random.Generator) -> Ratio:
    """Other time / own time of one workload."""
    return _ratio(estimate(logs), bootstrap(logs, rng))


def combine(
    logs: Mapping[str, Sequence[float]], mean: str, rng: np.random.Generator,
    spread: Callable[[Sequence[float], np.random.Generator], Array] = bootstrap,
) -> tuple[Ratio, dict[str, Ratio]]:  # fmt: skip
    """The mean ratio over workloads and the ratio of each, from the same resamples.

    Args:
        logs: workload -> paired log ratios.
        mean: "geometric", or "arithmetic" as in the paper.
        spread: where the true centre may lie: `bootstrap` or `robust`.
    """
    draws = {name: spread(values, rng) for name, values in logs.items()}
    centres = {name: estimate(values) for name, values in logs.items()}
    each = {name: _ratio(centres[name], draws[name]) for name in logs}
    stacked, middle = np.stack(list(draws.values())), np.array(list(centres.values()))
    if mean == "geometric":
        return _ratio(float(middle.mean()), stacked.mean(axis=0)), each
    total = _ratio(float(np.log(np.exp(middle).mean())), np.log(np.exp(stacked).mean(axis=0)))
    return total, each


def _ratio(centre: float, draws: Array) -> Ratio:
    low, high = np.percentile(draws, [2.5, 97.5])
    low, high = min(low, centre - LEAST_HALF_WIDTH), max(high, centre + LEAST_HALF_WIDTH)
    return Ratio(math.exp(centre), math.exp(low), math.exp(high))


def mean_of(values: Sequence[float], kind: str) -> float:
    if kind == "geometric":
        return math.exp(sum(math.log(v) for v in values) / len(values))
    return sum(values) / len(values)
