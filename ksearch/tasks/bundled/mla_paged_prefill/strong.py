"""Causal MLA prefill over a paged cache in one Triton kernel.

A program takes four consecutive queries of one sequence with all 16 heads, 64 rows that share their keys and values,
and keeps a running maximum (flash attention) over the tokens that the last of them sees. A tile of latents is read
once, for scores and for values. Which sequence a program works on follows from its number and the queries' bounds;
numbers beyond the last have nothing to do. Logarithms are in base 2.
"""

import math

import torch
import triton
import triton.language as tl

SM_SCALE = 0.1352337747812271
QUERIES = 4
STEP = 32


@triton.jit
def owner(tile, qo_indptr, batch, many: tl.constexpr, queries: tl.constexpr):
    """(the sequence that this tile of queries is of, how many tiles the sequences before it have)"""
    sequence = tl.arange(0, many)
    there = sequence < batch
    lower = tl.load(qo_indptr + sequence, mask=there, other=0)
    upper = tl.load(qo_indptr + sequence + 1, mask=there, other=0)
    tiles = (upper - lower + queries - 1) // queries
    b = tl.sum((there & (tl.cumsum(tiles, axis=0) <= tile)).to(tl.int32), axis=0)
    return b, tl.sum(tl.where(sequence < b, tiles, 0), axis=0)


@triton.jit
def attend(
    q_nope, q_pe, ckv_cache, kpe_cache, qo_indptr, kv_indptr, kv_indices, output, lse, scale, batch,
    many: tl.constexpr, queries: tl.constexpr, heads: tl.constexpr, ckv: tl.constexpr, kpe: tl.constexpr,
    step: tl.constexpr,
):  # fmt: skip
    b, earlier = owner(tl.program_id(0), qo_indptr, batch, many, queries)
    if b < batch:
        begin, end = tl.load(qo_indptr + b), tl.load(qo_indptr + b + 1)
        start, stop = tl.load(kv_indptr + b), tl.load(kv_indptr + b + 1)
        first = begin + (tl.program_id(0) - earlier) * queries
        row, n = tl.arange(0, queries * heads), tl.arange(0, step)
        c, r = tl.arange(0, ckv), tl.arange(0, kpe)
        real = row < (end - first) * heads
        line = first.to(tl.int64) * heads + row
        nope = tl.load(q_nope + line[:, None] * ckv + c[None, :], mask=real[:, None], other=0.0)
        rope = tl.load(q_pe + line[:, None] * kpe + r[None, :], mask=real[:, None], other=0.0)
        own = (stop - start) - (end - first) + row // heads  # the place in the sequence of each row's query
        seen = tl.minimum((stop - start) - (end - first) + queries, stop - start)
        top = tl.full((queries * heads,), -1e30, tl.float32)
        total = tl.zeros((queries * heads,), tl.float32)
        out = tl.zeros((queries * heads, ckv), tl.float32)
        for at in range(0, seen, step):
            inside = at + n < seen
            page = tl.load(kv_indices + start + at + n, mask=inside, other=0).to(tl.int64)
            latent = tl.load(ckv_cache + page[:, None] * ckv + c[None, :], mask=inside[:, None], other=0.0)
            turned = tl.load(kpe_cache + page[:, None] * kpe + r[None, :], mask=inside[:, None], other=0.0)
            s = tl.dot(rope, tl.trans(turned), tl.dot(nope, tl.trans(latent)))
            visible = inside[None, :] & (at + n[None, :] <= own[:, None])
            s = tl.where(visible, s * scale, float("-inf"))
            higher = tl.maximum(top, tl.max(s, axis=1))
            p = tl.exp2(s - higher[:, None])
            shrink = tl.exp2(top - higher)
            total = total * shrink + tl.sum(p, axis=1)
            out = tl.dot(p.to(latent.dtype), latent, out * shrink[:, None])
            top = higher
        out = out / tl.where(total > 0, total, 1.0)[:, None]
        tl.store(output + line[:, None] * ckv + c[None, :], out.to(output.dtype.element_ty), mask=real[:, None])
        tl.store(lse + line, top + tl.log2(total), mask=real)


def run(q_nope, q_pe, ckv_cache, kpe_cache, qo_indptr, kv_indptr, kv_indices):
    total, heads, ckv = q_nope.shape
    batch, kpe = len(qo_indptr) - 1, q_pe.shape[2]
    output = torch.empty_like(q_nope)
    lse = torch.empty((total, heads), dtype=torch.float32, device=q_nope.device)
    most = triton.cdiv(total, QUERIES) + batch  # tiles: each sequence may have one that is not full
    attend[(most,)](
        q_nope, q_pe, ckv_cache, kpe_cache, qo_indptr, kv_indptr, kv_indices, output, lse, SM_SCALE * math.log2(math.e),
        batch, many=max(triton.next_power_of_2(batch), 16), queries=QUERIES, heads=heads, ckv=ckv, kpe=kpe, step=STEP,
        num_warps=8, num_stages=2,
    )  # fmt: skip
    return output, lse
