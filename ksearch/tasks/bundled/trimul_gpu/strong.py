"""Triangle multiplication over outgoing edges: three Triton kernels around one batched matrix product.

`moments` finds mean and scale of each pair's features; `project` normalises them and makes left, right (channels first,
ready for the product) and the output gate; `finish` normalises the product over h, gates it and projects it back. All
products take fp16 and sum in fp32. Left values are scaled by 1/32, so that their product with the right ones stays in
the range of fp16; the second LayerNorm's epsilon is scaled with them, which leaves its result as it is.
"""

import torch
import triton
import triton.language as tl

HIDDEN = 128
SCALE = 1 / 32
MOMENTS = {"rows": 16, "num_warps": 4}
PROJECT = {"rows": 64, "step": 64, "num_warps": 4}
FINISH = {"rows": 64, "step": 64, "num_warps": 4}


@triton.jit
def moments(x, mean, inverse, pairs, c, epsilon, rows: tl.constexpr, width: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    k = tl.arange(0, width)
    inside = (at < pairs)[:, None] & (k < c)[None, :]
    v = tl.load(x + at[:, None] * c + k[None, :], mask=inside, other=0.0)
    middle = tl.sum(v, axis=1) / c
    v = tl.where(inside, v - middle[:, None], 0.0)
    tl.store(mean + at, middle, mask=at < pairs)
    tl.store(inverse + at, 1.0 / tl.sqrt(tl.sum(v * v, axis=1) / c + epsilon), mask=at < pairs)


@triton.jit
def project(
    x, mask, mean, inverse, norm_weight, norm_bias, weights, left, right, gate, pairs, c, scale,
    rows: tl.constexpr, step: tl.constexpr, h: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)  # 0: left, 1: right, 2: the output gate; next to each other, so that L2 still holds x
    b = tl.program_id(2).to(tl.int64)
    at = tl.program_id(1) * rows + tl.arange(0, rows)
    inside = at < pairs
    row = b * pairs + at.to(tl.int64)
    middle = tl.load(mean + row, mask=inside, other=0.0)[:, None]
    steep = tl.load(inverse + row, mask=inside, other=0.0)[:, None]
    hidden, k = tl.arange(0, h), tl.arange(0, step)
    value = tl.zeros((rows, h), tl.float32)
    logit = tl.zeros((rows, h), tl.float32)
    for start in range(0, c, step):
        kk = start + k
        v = tl.load(x + row[:, None] * c + kk[None, :], mask=inside[:, None], other=0.0)
        weight, bias = tl.load(norm_weight + kk)[None, :], tl.load(norm_bias + kk)[None, :]
        z = ((v - middle) * steep * weight + bias).to(tl.float16)
        w = weights + part * 2 * c * h + kk[:, None] * h + hidden[None, :]
        logit = tl.dot(z, tl.load(w), logit)
        if part < 2:
            value = tl.dot(z, tl.load(w + c * h), value)
    opened = 1.0 / (1.0 + tl.exp(-logit))
    if part < 2:
        on = tl.load(mask + row, mask=inside, other=0.0)
        if part == 0:
            on = on * scale
            target = left
        else:
            target = right
        there = target + (b * h + hidden[None, :]) * pairs + at[:, None]
        tl.store(there, (value * on[:, None] * opened).to(tl.float16), mask=inside[:, None])
    else:
        tl.store(gate + row[:, None] * h + hidden[None, :], opened.to(tl.float16), mask=inside[:, None])


@triton.jit
def finish(
    out, gate, norm_weight, norm_bias, w_out, y, pairs, c, epsilon,
    rows: tl.constexpr, step: tl.constexpr, h: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * rows + tl.arange(0, rows)
    inside = at < pairs
    hidden, k = tl.arange(0, h), tl.arange(0, step)
    there = out + (b * h + hidden[None, :]) * pairs + at[:, None]
    v = tl.load(there, mask=inside[:, None], other=0.0).to(tl.float32)
    v = v - (tl.sum(v, axis=1) / h)[:, None]
    steep = 1.0 / tl.sqrt(tl.sum(v * v, axis=1) / h + epsilon)
    v = v * steep[:, None] * tl.load(norm_weight + hidden)[None, :] + tl.load(norm_bias + hidden)[None, :]
    row = b * pairs + at.to(tl.int64)
    opened = tl.load(gate + row[:, None] * h + hidden[None, :], mask=inside[:, None], other=0.0)
    v = (v * opened.to(tl.float32)).to(tl.float16)
    for start in range(0, c, step):
        kk = start + k
        w = tl.load(w_out + hidden[:, None] * c + kk[None, :])
        tl.store(y + row[:, None] * c + kk[None, :], tl.dot(v, w), mask=inside[:, None])


def run(
    x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
    out_norm_weight, out_norm_bias, w_out,
):  # fmt: skip
    batch, n, _, c = x.shape
    pairs, h = n * n, HIDDEN
    mean = torch.empty((2, batch * pairs), dtype=torch.float32, device=x.device)
    moments[(triton.cdiv(batch * pairs, MOMENTS["rows"]),)](
        x, mean[0], mean[1], batch * pairs, c, 1e-5, width=triton.next_power_of_2(c), **MOMENTS
    )
    left = torch.empty((batch * h, n, n), dtype=torch.float16, device=x.device)
    right, gate = torch.empty_like(left), torch.empty((batch, n, n, h), dtype=torch.float16, device=x.device)
    weights = torch.stack((w_left_gate, w_left, w_right_gate, w_right, w_out_gate)).half()
    project[(3, triton.cdiv(pairs, PROJECT["rows"]), batch)](
        x, mask, mean[0], mean[1], norm_weight, norm_bias, weights, left, right, gate, pairs, c, SCALE, h=h, **PROJECT
    )
    out = torch.bmm(left, right.transpose(1, 2))
    y = torch.empty_like(x)
    finish[(triton.cdiv(pairs, FINISH["rows"]), batch)](
        out, gate, out_norm_weight, out_norm_bias, w_out.half(), y, pairs, c, 1e-5 * SCALE * SCALE, h=h, **FINISH
    )
    return y
