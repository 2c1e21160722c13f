"""Triangle multiplication over outgoing edges: what the right answer is, in float64."""

from __future__ import annotations

import math

import numpy as np

EPSILON = 1e-5


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Pair features with a residue mask: an edge counts where both of its ends do, plus a few lone gaps."""
    batch, n, c, h = axes["batch"], axes["n"], axes["c"], axes["h"]
    ends = rng.random((batch, n)) < 0.9
    mask = ends[:, :, None] & ends[:, None, :] & (rng.random((batch, n, n)) < 0.97)

    def weight(rows: int, cols: int) -> np.ndarray:
        return (rng.standard_normal((rows, cols)) / math.sqrt(rows)).astype(np.float32)

    return {
        "x": rng.standard_normal((batch, n, n, c), dtype=np.float32),
        "mask": mask.astype(np.float32),
        "norm_weight": rng.uniform(0.5, 1.5, size=c).astype(np.float32),
        "norm_bias": (0.2 * rng.standard_normal(c)).astype(np.float32),
        "w_left": weight(c, h),
        "w_right": weight(c, h),
        "w_left_gate": weight(c, h),
        "w_right_gate": weight(c, h),
        "w_out_gate": weight(c, h),
        "out_norm_weight": rng.uniform(0.5, 1.5, size=h).astype(np.float32),
        "out_norm_bias": (0.2 * rng.standard_normal(h)).astype(np.float32),
        "w_out": weight(h, c),
    }


def _layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    mean = x.mean(axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON) * weight + bias


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    t = {name: array.astype(np.float64) for name, array in inputs.items()}
    mask = t["mask"][..., None]
    z = _layer_norm(t["x"], t["norm_weight"], t["norm_bias"])
    left = z @ t["w_left"] * mask * _sigmoid(z @ t["w_left_gate"])
    right = z @ t["w_right"] * mask * _sigmoid(z @ t["w_right_gate"])
    # out[b, i, j, h] = sum over k of left[b, i, k, h] * right[b, j, k, h], as one product per (b, h)
    left, right = left.transpose(0, 3, 1, 2), right.transpose(0, 3, 1, 2)
    out = (left @ right.transpose(0, 1, 3, 2)).transpose(0, 2, 3, 1)
    out = _layer_norm(out, t["out_norm_weight"], t["out_norm_bias"])
    return {"y": out * _sigmoid(z @ t["w_out_gate"]) @ t["w_out"]}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """No mask at all, one residue masked out entirely, features far from zero mean."""
    full = inputs(axes, rng)
    full["mask"][:] = 1
    gap = inputs(axes, rng)
    residue = rng.integers(axes["n"])
    gap["mask"][:, residue, :] = 0
    gap["mask"][:, :, residue] = 0
    shifted = inputs(axes, rng)
    shifted["x"] = (shifted["x"] * 2 + 5).astype(np.float32)
    return [full, gap, shifted]
