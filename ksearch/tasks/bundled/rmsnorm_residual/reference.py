"""RMSNorm after a residual addition: what the right answer is, in float64."""

from __future__ import annotations

import numpy as np

EPSILON = 1e-6


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Activations and a residual stream whose size differs from token to token, as in a deep model."""
    shape = (axes["tokens"], axes["hidden"])
    residual = rng.standard_normal(shape, dtype=np.float32)
    residual *= np.exp(rng.uniform(-2.0, 3.0, size=(shape[0], 1))).astype(np.float32)
    return {
        "x": rng.standard_normal(shape, dtype=np.float32),
        "residual": residual,
        "weight": rng.uniform(0.5, 1.5, size=shape[1]).astype(np.float32),
    }


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    total = inputs["x"].astype(np.float64) + inputs["residual"].astype(np.float64)
    mean_square = np.mean(total * total, axis=1, keepdims=True)
    y = total / np.sqrt(mean_square + EPSILON) * inputs["weight"].astype(np.float64)
    return {"y": y, "residual_out": total}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Tokens so small that epsilon counts, very large ones, outlier channels, one token of zeros."""
    shape = (axes["tokens"], axes["hidden"])
    cases = []
    for scale in (1e-3, 1e4):
        case = inputs(axes, rng)
        case["x"] = (rng.standard_normal(shape) * scale).astype(np.float32)
        case["residual"] = (rng.standard_normal(shape) * scale).astype(np.float32)
        cases.append(case)
    outlier = inputs(axes, rng)
    outlier["residual"][:, rng.integers(shape[1])] = 3e3
    cases.append(outlier)
    if shape[0] > 1:
        empty = inputs(axes, rng)
        token = rng.integers(shape[0])
        empty["x"][token] = 0
        empty["residual"][token] = 0
        cases.append(empty)
    return cases
