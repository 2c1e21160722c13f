"""MLA decode over a paged cache in two Triton kernels.

`attend` takes one slice of one sequence with all 16 heads, which share their keys and values, and keeps a running
maximum (flash attention): a tile of latents is read once, for scores and for values. There are as many slices per
sequence as it takes to fill the GPU. `merge` puts the slices of a sequence together by their log-sum-exp, which is in
base 2 throughout.
"""

import math

import torch
import triton
import triton.language as tl

SM_SCALE = 0.1352337747812271
PROGRAMS = 264  # at once: two for each multiprocessor of an H200
MOST_SLICES = 64
STEP = 32
COLUMNS = 128  # of the output, merged together


@triton.jit
def attend(
    q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, part, part_lse, scale, slices,
    heads: tl.constexpr, ckv: tl.constexpr, kpe: tl.constexpr, step: tl.constexpr,
):  # fmt: skip
    b, piece = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(kv_indptr + b), tl.load(kv_indptr + b + 1)
    each = tl.cdiv(tl.cdiv(end - begin, slices), step) * step
    start = begin + piece * each
    stop = tl.minimum(start + each, end)
    head, c, r, n = tl.arange(0, heads), tl.arange(0, ckv), tl.arange(0, kpe), tl.arange(0, step)
    nope = tl.load(q_nope + (b * heads + head)[:, None] * ckv + c[None, :])
    rope = tl.load(q_pe + (b * heads + head)[:, None] * kpe + r[None, :])
    top = tl.full((heads,), -1e30, tl.float32)
    total = tl.zeros((heads,), tl.float32)
    out = tl.zeros((heads, ckv), tl.float32)
    for first in range(start, stop, step):
        inside = first + n < stop
        page = tl.load(kv_indices + first + n, mask=inside, other=0).to(tl.int64)
        latent = tl.load(ckv_cache + page[:, None] * ckv + c[None, :], mask=inside[:, None], other=0.0)
        turned = tl.load(kpe_cache + page[:, None] * kpe + r[None, :], mask=inside[:, None], other=0.0)
        s = tl.dot(rope, tl.trans(turned), tl.dot(nope, tl.trans(latent)))
        s = tl.where(inside[None, :], s * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, axis=1)
        out = tl.dot(p.to(latent.dtype), latent, out * shrink[:, None])
        top = higher
    line = (b * slices + piece) * heads + head
    out = out / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(part + line[:, None] * ckv + c[None, :], out)
    tl.store(part_lse + line, top + tl.log2(total))


@triton.jit
def merge(part, part_lse, output, lse, slices, heads, ckv, columns: tl.constexpr, most: tl.constexpr):
    b, head = tl.program_id(0), tl.program_id(1)
    piece, c = tl.arange(0, most), tl.program_id(2) * columns + tl.arange(0, columns)
    line = (b * slices + piece) * heads + head
    each = tl.load(part_lse + line, mask=piece < slices, other=float("-inf"))
    top = tl.maximum(tl.max(each, axis=0), -1e30)  # of an empty sequence nothing but -inf
    weight = tl.exp2(each - top)
    total = tl.sum(weight, axis=0)
    value = tl.load(part + line[:, None] * ckv + c[None, :], mask=(piece < slices)[:, None], other=0.0)
    value = tl.sum(value * weight[:, None], axis=0) / tl.where(total > 0, total, 1.0)
    at = b * heads + head
    tl.store(output + at * ckv + c, value.to(output.dtype.element_ty))
    tl.store(lse + at, top + tl.log2(total))


def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices):
    batch, heads, ckv = q_nope.shape
    kpe = q_pe.shape[2]
    wanted = min(triton.cdiv(PROGRAMS, batch), triton.cdiv(len(kv_indices), batch * STEP), MOST_SLICES)
    slices = triton.next_power_of_2(max(wanted, 1))
    part = torch.empty((batch, slices, heads, ckv), dtype=torch.float32, device=q_nope.device)
    part_lse = torch.empty((batch, slices, heads), dtype=torch.float32, device=q_nope.device)
    attend[(batch, slices)](
        q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, part, part_lse, SM_SCALE * math.log2(math.e),
        slices, heads=heads, ckv=ckv, kpe=kpe, step=STEP, num_warps=8, num_stages=2,
    )  # fmt: skip
    output = torch.empty_like(q_nope)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q_nope.device)
    merge[(batch, heads, ckv // COLUMNS)](
        part, part_lse, output, lse, slices, heads, ckv, columns=COLUMNS, most=max(slices, 2), num_warps=4
    )
    return output, lse
