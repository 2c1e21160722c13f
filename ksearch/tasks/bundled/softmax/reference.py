"""Row softmax: what the right answer is, in float64."""

from __future__ import annotations

import numpy as np


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Scores as attention makes them: normal, each row with its own spread and offset."""
    rows, cols = axes["rows"], axes["cols"]
    x = rng.standard_normal((rows, cols), dtype=np.float32)
    x *= rng.uniform(0.5, 4.0, size=(rows, 1)).astype(np.float32)
    x += rng.uniform(-20.0, 20.0, size=(rows, 1)).astype(np.float32)
    return {"x": x}


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    x = inputs["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Rows that overflow without the shift, masked rows, equal scores, the maximum at either end."""
    rows, cols = axes["rows"], axes["cols"]
    plain = rng.standard_normal((rows, cols), dtype=np.float32)
    huge = plain * np.float32(30) + rng.choice(np.float32([-1e4, 1e4]), size=(rows, 1))
    visible = rng.integers(1, cols + 1, size=(rows, 1))  # causal: at least the first score is visible
    masked = np.where(np.arange(cols) < visible, plain, np.float32(-np.inf))
    masked_in_front = masked[:, ::-1].copy()
    equal = np.repeat(plain[:, :1], cols, axis=1)
    peak = plain.copy()
    peak[::2, 0] = 25.0
    peak[1::2, -1] = 25.0
    return [{"x": x} for x in (huge, masked, masked_in_front, equal, peak)]
