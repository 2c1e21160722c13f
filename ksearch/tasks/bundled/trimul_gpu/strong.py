"""Triangle multiplication over outgoing edges: two Triton kernels around one batched matrix product.

`project` normalises x and makes left, right (channels first, ready for the product) and the output gate; `finish`
normalises the product over h, gates it and projects it back. All products take fp16 and sum in fp32. Left values are
scaled by 1/32, so that their product with the right ones stays in the range of fp16; the second LayerNorm's epsilon is
scaled with them, which leaves its result as it is.
"""

import torch
import triton
import triton.language as tl

HIDDEN = 128
SCALE = 1 / 32


@triton.jit
def project(
    x, mask, norm_weight, norm_bias, w_left, w_left_gate, w_right, w_right_gate, w_out_gate, left, right, gate,
    pairs, c, epsilon, scale, rows: tl.constexpr, step: tl.constexpr, h: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)  # 0: left, 1: right, 2: the output gate; next to each other, so that x is read once
    b = tl.program_id(2).to(tl.int64)
    at = tl.program_id(1) * rows + tl.arange(0, rows)
    inside = at < pairs
    x += b * pairs * c
    row = at.to(tl.int64) * c
    k = tl.arange(0, step)
    total = tl.zeros((rows,), tl.float32)
    for start in range(0, c, step):
        v = tl.load(x + row[:, None] + (start + k)[None, :], mask=inside[:, None], other=0.0)
        total += tl.sum(v, axis=1)
    mean = total / c
    square = tl.zeros((rows,), tl.float32)
    for start in range(0, c, step):
        v = tl.load(x + row[:, None] + (start + k)[None, :], mask=inside[:, None], other=0.0)
        v = v - mean[:, None]
        square += tl.sum(v * v, axis=1)
    inverse = 1.0 / tl.sqrt(square / c + epsilon)

    if part == 0:
        w_value, w_gate, target = w_left, w_left_gate, left
    elif part == 1:
        w_value, w_gate, target = w_right, w_right_gate, right
        scale = 1.0
    else:
        w_value, w_gate, target = w_out_gate, w_out_gate, gate
    hidden = tl.arange(0, h)
    value = tl.zeros((rows, h), tl.float32)
    logit = tl.zeros((rows, h), tl.float32)
    for start in range(0, c, step):
        kk = start + k
        v = tl.load(x + row[:, None] + kk[None, :], mask=inside[:, None], other=0.0)
        weight, bias = tl.load(norm_weight + kk), tl.load(norm_bias + kk)
        z = ((v - mean[:, None]) * inverse[:, None] * weight[None, :] + bias[None, :]).to(tl.float16)
        place = kk[:, None] * h + hidden[None, :]
        logit = tl.dot(z, tl.load(w_gate + place).to(tl.float16), logit)
        if part < 2:
            value = tl.dot(z, tl.load(w_value + place).to(tl.float16), value)
    opened = 1.0 / (1.0 + tl.exp(-logit))
    if part < 2:
        on = tl.load(mask + b * pairs + at, mask=inside, other=0.0) * scale
        result = value * on[:, None] * opened
        there = target + (b * h + hidden.to(tl.int64)[None, :]) * pairs + at[:, None]
        tl.store(there, result.to(tl.float16), mask=inside[:, None])
    else:
        there = target + (b * pairs + at.to(tl.int64)[:, None]) * h + hidden[None, :]
        tl.store(there, opened.to(tl.float16), mask=inside[:, None])


@triton.jit
def finish(
    out, gate, norm_weight, norm_bias, w_out, y, pairs, c, epsilon,
    rows: tl.constexpr, step: tl.constexpr, h: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * rows + tl.arange(0, rows)
    inside = at < pairs
    hidden = tl.arange(0, h)
    there = out + (b * h + hidden.to(tl.int64)[None, :]) * pairs + at[:, None]
    v = tl.load(there, mask=inside[:, None], other=0.0).to(tl.float32)
    v = v - (tl.sum(v, axis=1) / h)[:, None]
    inverse = 1.0 / tl.sqrt(tl.sum(v * v, axis=1) / h + epsilon)
    v = v * inverse[:, None] * tl.load(norm_weight + hidden)[None, :] + tl.load(norm_bias + hidden)[None, :]
    row = b * pairs + at.to(tl.int64)
    opened = tl.load(gate + row[:, None] * h + hidden[None, :], mask=inside[:, None], other=0.0)
    v = (v * opened.to(tl.float32)).to(tl.float16)
    k = tl.arange(0, step)
    for start in range(0, c, step):
        kk = start + k
        w = tl.load(w_out + hidden[:, None] * c + kk[None, :]).to(tl.float16)
        tl.store(y + row[:, None] * c + kk[None, :], tl.dot(v, w), mask=inside[:, None])


def run(
    x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
    out_norm_weight, out_norm_bias, w_out,
):  # fmt: skip
    batch, n, _, c = x.shape
    pairs, h = n * n, HIDDEN
    left = torch.empty((batch * h, n, n), dtype=torch.float16, device=x.device)
    right, gate = torch.empty_like(left), torch.empty((batch, n, n, h), dtype=torch.float16, device=x.device)
    project[(3, triton.cdiv(pairs, 64), batch)](
        x, mask, norm_weight, norm_bias, w_left, w_left_gate, w_right, w_right_gate, w_out_gate, left, right, gate,
        pairs, c, 1e-5, SCALE, rows=64, step=64, h=h, num_warps=4,
    )  # fmt: skip
    out = torch.bmm(left, right.transpose(1, 2))
    y = torch.empty_like(x)
    finish[(triton.cdiv(pairs, 64), batch)](
        out, gate, out_norm_weight, out_norm_bias, w_out, y, pairs, c, 1e-5 * SCALE * SCALE,
        rows=64, step=64, h=h, num_warps=4,
    )  # fmt: skip
    return y
