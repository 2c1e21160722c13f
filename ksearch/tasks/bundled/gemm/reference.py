"""Matrix product: what the right answer is, in float64."""

from __future__ import annotations

import math

import numpy as np


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal entries; b is scaled so that the entries of c are of size 1 whatever k is."""
    m, n, k = axes["m"], axes["n"], axes["k"]
    return {
        "a": rng.standard_normal((m, k), dtype=np.float32),
        "b": rng.standard_normal((k, n), dtype=np.float32) / np.float32(math.sqrt(k)),
    }


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Small integers (exact in any order of addition), rows of very different size, sparse matrices."""
    m, n, k = axes["m"], axes["n"], axes["k"]
    whole = {
        "a": rng.integers(-8, 9, size=(m, k)).astype(np.float32),
        "b": rng.integers(-8, 9, size=(k, n)).astype(np.float32),
    }
    scaled = inputs(axes, rng)
    scaled["a"] *= np.exp(rng.uniform(-8.0, 0.0, size=(m, 1))).astype(np.float32)
    sparse = inputs(axes, rng)
    sparse["a"] *= rng.random((m, k)) < 0.1
    return [whole, scaled, sparse]
