"""Decode attention over a paged cache in two Triton kernels.

`attend` takes one slice of one sequence and one key/value head, with all the query heads that read it, and keeps a
running maximum (flash attention); there are as many slices per sequence as it takes to fill the GPU. `merge` puts the
slices of a sequence together by their log-sum-exp, which is in base 2 throughout.
"""

import math

import torch
import triton
import triton.language as tl

SM_SCALE = 1 / math.sqrt(128)
PROGRAMS = 264  # at once: two for each multiprocessor of an H200
MOST_SLICES = 32
ROWS = 16  # the least that a matrix product takes; only as many rows as there are heads in a group are used
STEP = 64


@triton.jit
def attend(
    q, k_cache, v_cache, kv_indptr, kv_indices, part, part_lse, scale, slices, kv_heads,
    group: tl.constexpr, dim: tl.constexpr, rows: tl.constexpr, step: tl.constexpr,
):  # fmt: skip
    b, kv_head, piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(kv_indptr + b), tl.load(kv_indptr + b + 1)
    each = tl.cdiv(tl.cdiv(end - begin, slices), step) * step
    start = begin + piece * each
    stop = tl.minimum(start + each, end)
    row, d, n = tl.arange(0, rows), tl.arange(0, dim), tl.arange(0, step)
    head = kv_head * group + row
    real = row < group
    at = (b * kv_heads * group + head)[:, None] * dim + d[None, :]
    query = tl.load(q + at, mask=real[:, None], other=0.0)
    top = tl.full((rows,), -1e30, tl.float32)
    total = tl.zeros((rows,), tl.float32)
    out = tl.zeros((rows, dim), tl.float32)
    for first in range(start, stop, step):
        inside = first + n < stop
        page = tl.load(kv_indices + first + n, mask=inside, other=0).to(tl.int64)
        there = ((page * kv_heads + kv_head) * dim)[:, None] + d[None, :]
        k = tl.load(k_cache + there, mask=inside[:, None], other=0.0)
        v = tl.load(v_cache + there, mask=inside[:, None], other=0.0)
        s = tl.where(inside[None, :], tl.dot(query, tl.trans(k)) * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, axis=1)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        top = higher
    line = (b * slices + piece) * kv_heads * group + head
    out = out / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(part + line[:, None] * dim + d[None, :], out, mask=real[:, None])
    tl.store(part_lse + line, top + tl.log2(total), mask=real)


@triton.jit
def merge(part, part_lse, output, lse, slices, heads, dim: tl.constexpr, most: tl.constexpr):
    b, head = tl.program_id(0), tl.program_id(1)
    piece, d = tl.arange(0, most), tl.arange(0, dim)
    line = (b * slices + piece) * heads + head
    each = tl.load(part_lse + line, mask=piece < slices, other=float("-inf"))
    top = tl.maximum(tl.max(each, axis=0), -1e30)  # of an empty sequence nothing but -inf
    weight = tl.exp2(each - top)
    total = tl.sum(weight, axis=0)
    value = tl.load(part + line[:, None] * dim + d[None, :], mask=(piece < slices)[:, None], other=0.0)
    value = tl.sum(value * weight[:, None], axis=0) / tl.where(total > 0, total, 1.0)
    at = b * heads + head
    tl.store(output + at * dim + d, value.to(output.dtype.element_ty))
    tl.store(lse + at, top + tl.log2(total))


def run(q, k_cache, v_cache, kv_indptr, kv_indices):
    batch, heads, dim = q.shape
    kv_heads = k_cache.shape[2]
    wanted = min(triton.cdiv(PROGRAMS, batch * kv_heads), triton.cdiv(len(kv_indices), batch * STEP), MOST_SLICES)
    slices = triton.next_power_of_2(max(wanted, 1))
    part = torch.empty((batch, slices, heads, dim), dtype=torch.float32, device=q.device)
    part_lse = torch.empty((batch, slices, heads), dtype=torch.float32, device=q.device)
    attend[(batch, kv_heads, slices)](
        q, k_cache, v_cache, kv_indptr, kv_indices, part, part_lse, SM_SCALE * math.log2(math.e), slices, kv_heads,
        group=heads // kv_heads, dim=dim, rows=ROWS, step=STEP, num_warps=4,
    )  # fmt: skip
    output = torch.empty_like(q)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    merge[(batch, heads)](part, part_lse, output, lse, slices, heads, dim=dim, most=max(slices, 2), num_warps=4)
    return output, lse
