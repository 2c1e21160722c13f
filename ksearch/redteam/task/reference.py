"""Row softmax of x * w under a causal mask: row r sees the first r % C + 1 columns, the rest is zero."""

from __future__ import annotations

import numpy as np


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    rows, cols = axes["R"], axes["C"]
    return {
        "x": (2.5 * rng.standard_normal((rows, cols))).astype(np.float32),
        "w": rng.uniform(0.5, 1.5, cols).astype(np.float32),
    }


def reference(given: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    rows, cols = axes["R"], axes["C"]
    seen = np.arange(cols)[None, :] <= (np.arange(rows) % cols)[:, None]
    value = np.where(seen, given["x"].astype(np.float64) * given["w"], -np.inf)
    value = np.exp(value - value.max(1, keepdims=True))
    return {"y": value / value.sum(1, keepdims=True)}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Values that overflow without subtracting the maximum, and values that are all the same."""
    rows, cols = axes["R"], axes["C"]
    ones = np.ones(cols, np.float32)
    large = (rng.standard_normal((rows, cols)) + 200).astype(np.float32)
    return [{"x": large, "w": ones}, {"x": np.zeros((rows, cols), np.float32), "w": ones}]
