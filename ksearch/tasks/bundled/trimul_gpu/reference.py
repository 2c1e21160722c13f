"""Triangle multiplication over outgoing edges on a GPU: what is given, and what the right answer is.

In float64 where the GPU has ten times the room that it takes, else in float32 without TF32; row by row where it can be.
"""

from __future__ import annotations

import math

import torch

EPSILON = 1e-5
HIDDEN = 128
CHUNK = 1 << 25  # elements of x normalised together
LARGE = 1 << 22  # elements of x: no awkward cases beyond

Tensors = dict[str, torch.Tensor]


def inputs(axes: dict[str, int], generator: torch.Generator) -> Tensors:
    batch, n, c, h = axes["batch"], axes["n"], axes["c"], HIDDEN
    place = {"device": generator.device, "dtype": torch.float32}

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, **place)

    mask = torch.ones((batch, n, n), **place)
    if axes["mask_kind"] == 2:
        mask.bernoulli_(0.5, generator=generator)
    elif axes["mask_kind"] == 3:
        mask.uniform_(0, 1, generator=generator)
    x = torch.empty((batch, n, n, c), **place)
    if axes["distribution"] == 2:
        x.cauchy_(0, 1, generator=generator)
    else:
        x.normal_(generator=generator)
    return {
        "x": x,
        "mask": mask,
        "norm_weight": normal(c),
        "norm_bias": normal(c),
        "w_left": normal(c, h) / math.sqrt(h),
        "w_right": normal(c, h) / math.sqrt(h),
        "w_left_gate": normal(c, h) / math.sqrt(h),
        "w_right_gate": normal(c, h) / math.sqrt(h),
        "w_out_gate": normal(c, h) / math.sqrt(h),
        "out_norm_weight": normal(h),
        "out_norm_bias": normal(h),
        "w_out": normal(h, c) / math.sqrt(c),
    }


def _precision(x: torch.Tensor) -> torch.dtype:
    if not x.is_cuda:
        return torch.float64
    pairs, c = x.numel() // x.shape[-1], x.shape[-1]
    needed = 8 * pairs * (c + 4 * HIDDEN) + 40 * CHUNK
    room = torch.cuda.get_device_properties(x.device).total_memory
    return torch.float64 if 10 * needed <= room else torch.float32


def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    x = x - x.mean(dim=-1, keepdim=True)
    scale = torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON)
    return x.mul_(scale).mul_(weight).add_(bias)


def _rows(x: torch.Tensor) -> list[slice]:
    """Slices of the first dimension with about CHUNK elements each."""
    step = max(1, CHUNK // max(1, x[0].numel()))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def _one(x: torch.Tensor, mask: torch.Tensor, w: Tensors, y: torch.Tensor) -> None:
    """One element of the batch, x (n, n, c) and mask (n, n), into y (n, n, c)."""
    n, h, dtype = x.shape[0], HIDDEN, y.dtype
    left, right, gate = (torch.empty((n, n, h), dtype=dtype, device=x.device) for _ in range(3))
    for part in _rows(x):
        z = _layer_norm(x[part].to(dtype), w["norm_weight"], w["norm_bias"])
        on = mask[part].to(dtype).unsqueeze(-1)
        left[part] = (z @ w["w_left"]).mul_(on).mul_(torch.sigmoid_(z @ w["w_left_gate"]))
        right[part] = (z @ w["w_right"]).mul_(on).mul_(torch.sigmoid_(z @ w["w_right_gate"]))
        gate[part] = torch.sigmoid_(z @ w["w_out_gate"])
    # The sum over k as one matrix product per h: (h, i, k) @ (h, k, j).
    out = left.permute(2, 0, 1).contiguous() @ right.permute(2, 1, 0).contiguous()
    del left, right
    for part in _rows(x):
        value = _layer_norm(out[:, part].permute(1, 2, 0), w["out_norm_weight"], w["out_norm_bias"])
        y[part] = value.mul_(gate[part]) @ w["w_out"]


def reference(inputs: Tensors, axes: dict[str, int]) -> Tensors:
    x, mask = inputs["x"], inputs["mask"]
    dtype = _precision(x)
    weights = {name: value.to(dtype) for name, value in inputs.items() if name not in ("x", "mask")}
    y = torch.empty(x.shape, dtype=dtype, device=x.device)
    for b in range(len(x)):
        _one(x[b], mask[b], weights, y[b])
    return {"y": y}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[Tensors]:
    """A residue masked out entirely; features far from zero mean; features so small that epsilon counts.

    None for large sizes: they show nothing that small ones do not.
    """
    if axes["batch"] * axes["n"] ** 2 * axes["c"] > LARGE:
        return []
    gap, shifted, small = (inputs({**axes, "distribution": 1}, generator) for _ in range(3))
    residue = axes["n"] // 3
    gap["mask"][:, residue, :] = 0
    gap["mask"][:, :, residue] = 0
    shifted["x"].mul_(2).add_(20)
    small["x"].mul_(3e-3)
    return [gap, shifted, small]
