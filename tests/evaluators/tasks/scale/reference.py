"""y = 2 x + row mean: small, but wrong in many ways if done wrong."""

import numpy as np


def inputs(axes, rng):
    return {"x": rng.standard_normal((axes["m"], axes["n"]), dtype=np.float32)}


def reference(inputs, axes):
    x = inputs["x"].astype(np.float64)
    return {"y": 2 * x + x.mean(axis=1, keepdims=True)}


def awkward(axes, rng):
    shape = (axes["m"], axes["n"])
    large = (np.abs(rng.standard_normal(shape)) * 1e30).astype(np.float32)
    return [{"x": np.zeros(shape, np.float32)}, {"x": large}]
