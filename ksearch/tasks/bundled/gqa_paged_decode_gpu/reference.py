"""Decode attention with grouped queries over a paged cache, on a GPU: what is given, and what the right answer is.

The inputs hold bfloat16, whose products are exact in float32; sums are in float32 without TF32.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch

HEADS, KV_HEADS, DIM = 32, 4, 128
SM_SCALE = 1 / math.sqrt(DIM)
MOST_PAGES = 40_000  # no awkward cases for larger caches

Tensors = dict[str, torch.Tensor]


def _split(total: int, parts: int, generator: torch.Generator) -> torch.Tensor:
    """`total` over `parts`, unevenly (0.6 to 1.4 of the mean), each at least 1; or 1 for as many as there are."""
    place = generator.device
    if total < parts:
        sizes = torch.zeros(parts, dtype=torch.int64)
        sizes[torch.randperm(parts, generator=generator, device=place)[:total].cpu()] = 1
        return sizes
    weights = 0.6 + 0.8 * torch.rand(parts, dtype=torch.float64, generator=generator, device=place).cpu()
    ends = (weights.cumsum(0) / weights.sum() * (total - parts)).round().long()
    ends[-1] = total - parts
    return 1 + ends.diff(prepend=ends.new_zeros(1))


def _given(axes: dict[str, int], lengths: torch.Tensor, generator: torch.Generator) -> Tensors:
    """Inputs for sequences of these lengths; their pages lie anywhere in the cache, none belongs to two."""
    pages, tokens, place = axes["num_pages"], axes["num_kv_indices"], generator.device

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, generator=generator, device=place)

    bounds = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    return {
        "q": normal(axes["batch_size"], HEADS, DIM),
        "k_cache": normal(pages, 1, KV_HEADS, DIM),
        "v_cache": normal(pages, 1, KV_HEADS, DIM),
        "kv_indptr": bounds.to(place, torch.int32),
        "kv_indices": torch.randperm(pages, generator=generator, device=place)[:tokens].to(torch.int32),
    }


def inputs(axes: dict[str, int], generator: torch.Generator) -> Tensors:
    return _given(axes, _split(axes["num_kv_indices"], axes["batch_size"], generator), generator)


def reference(inputs: Tensors, axes: dict[str, int]) -> Tensors:
    queries = inputs["q"].float().view(-1, KV_HEADS, HEADS // KV_HEADS, DIM)
    out = torch.zeros_like(queries)
    lse = torch.full(queries.shape[:-1], -math.inf, device=queries.device)
    for sequence, (start, end) in enumerate(pairwise(inputs["kv_indptr"].tolist())):
        if start >= end:
            continue
        used = inputs["kv_indices"][start:end].long()
        k, v = (inputs[name][used, 0].float().transpose(0, 1) for name in ("k_cache", "v_cache"))  # heads, tokens, dim
        scores = queries[sequence] @ k.transpose(1, 2) * SM_SCALE
        out[sequence] = torch.softmax(scores, dim=-1) @ v
        lse[sequence] = torch.logsumexp(scores, dim=-1) / math.log(2)
    return {"output": out.view(-1, HEADS, DIM), "lse": lse.view(-1, HEADS)}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[Tensors]:
    """Scores beyond what exp can take, unused pages full of NaN, some empty sequences, all but one empty."""
    batch, tokens = axes["batch_size"], axes["num_kv_indices"]
    if axes["num_pages"] > MOST_PAGES:
        return []
    sharp, stale = inputs(axes, generator), inputs(axes, generator)
    sharp["q"] *= 32
    unused = torch.ones(axes["num_pages"], dtype=torch.bool, device=generator.device)
    unused[stale["kv_indices"].long()] = False
    for name in ("k_cache", "v_cache"):
        stale[name][unused] = math.nan
    cases = [sharp, stale]
    if batch > 1:
        gaps, single = torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
        gaps[1::2] = _split(tokens, batch // 2, generator)
        single[batch // 2] = tokens
        cases += [_given(axes, gaps, generator), _given(axes, single, generator)]
    return cases
