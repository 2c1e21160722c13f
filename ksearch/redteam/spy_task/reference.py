"""The spy's task: inputs and expected values are marks that can be told from everything else in a memory dump."""

from __future__ import annotations

import numpy as np

GIVEN = (1.2345678e10, -8.7654321e-9, 3.1313131e17, -5.5554444e-3)  # a program has these
EXPECTED = (-7.7123456e11, 6.1987654e-12, -2.4242424e15, 9.9887766e-7)  # and never these


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    x = np.resize(np.array(GIVEN, np.float32), (axes["R"], axes["C"]))
    return {"x": x, "w": rng.uniform(0.5, 1.5, axes["C"]).astype(np.float32)}


def reference(given: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    return {"y": np.resize(np.array(EXPECTED, np.float64), (axes["R"], axes["C"]))}
