"""What the right answer is. Clear rather than fast: it computes in float64 and is never timed."""

from __future__ import annotations

import numpy as np


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Fresh random inputs for these sizes; all randomness comes from `rng`."""
    shape = (axes["rows"], axes["cols"])
    return {
        "gate": (2 * rng.standard_normal(shape)).astype(np.float32),
        "up": rng.standard_normal(shape).astype(np.float32),
    }


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    """The outputs by name."""
    gate, up = inputs["gate"].astype(np.float64), inputs["up"].astype(np.float64)
    y = gate / (1 + np.exp(-gate)) * up
    return {"y": y, "peak": np.abs(y).max(axis=1)}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Optional: inputs that break careless kernels. Here: gates for which exp(-gate) is large or vanishes."""
    steep = inputs(axes, rng)
    steep["gate"] *= 15
    return [steep]
