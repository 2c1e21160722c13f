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
    plain = inputs(axes, rng)
    tokens, hidden = plain["x"].shape
    cases = [
        {**plain, "x": plain["x"] * scale, "residual": plain["x"][::-1, ::-1] * scale}
        for scale in (np.float32(1e-3), np.float32(1e4))
    ]
    outlier = plain["residual"].copy()
    outlier[:, rng.integers(hidden)] = 3e3
    cases.append({**plain, "residual": outlier})
    if tokens > 1:
        x, residual = plain["x"].copy(), plain["residual"].copy()
        token = rng.integers(tokens)
        x[token] = residual[token] = 0
        cases.append({**plain, "x": x, "residual": residual})
    return cases
