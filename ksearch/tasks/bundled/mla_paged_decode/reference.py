"""Multi-head latent attention (MLA), decode over a paged cache, on a GPU: what is given, and what the right answer is.

The inputs hold bfloat16, whose products are exact in float32; sums are in float32 without TF32.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch

HEADS, CKV, KPE = 16, 512, 64
SM_SCALE = 0.1352337747812271
MOST_PAGES = 200_000  # no awkward cases for larger caches

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
    batch, pages, tokens, place = axes["batch_size"], axes["num_pages"], axes["num_kv_indices"], generator.device

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, generator=generator, device=place)

    bounds = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    return {
        "q_nope": normal(batch, HEADS, CKV),
        "q_pe": normal(batch, HEADS, KPE),
        "ckv_cache": normal(pages, 1, CKV),
        "kpe_cache": normal(pages, 1, KPE),
        "kv_indptr": bounds.to(place, torch.int32),
        "kv_indices": torch.randperm(pages, generator=generator, device=place)[:tokens].to(torch.int32),
    }


def inputs(axes: dict[str, int], generator: torch.Generator) -> Tensors:
    return _given(axes, _split(axes["num_kv_indices"], axes["batch_size"], generator), generator)


def reference(inputs: Tensors, axes: dict[str, int]) -> Tensors:
    queries = torch.cat((inputs["q_nope"], inputs["q_pe"]), dim=-1).float()
    out = queries.new_zeros((len(queries), HEADS, CKV))
    lse = queries.new_full((len(queries), HEADS), -math.inf)
    for sequence, (start, end) in enumerate(pairwise(inputs["kv_indptr"].tolist())):
        if start >= end:
            continue
        used = inputs["kv_indices"][start:end].long()
        values = inputs["ckv_cache"][used, 0].float()  # (tokens, CKV): the first part of each key, too
        keys = torch.cat((values, inputs["kpe_cache"][used, 0].float()), dim=-1)
        scores = queries[sequence] @ keys.T * SM_SCALE
        out[sequence] = torch.softmax(scores, dim=-1) @ values
        lse[sequence] = torch.logsumexp(scores, dim=-1) / math.log(2)
    return {"output": out, "lse": lse}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[Tensors]:
    """Scores beyond what exp can take, unused pages full of NaN, some empty sequences, all but one empty."""
    batch, tokens = axes["batch_size"], axes["num_kv_indices"]
    if axes["num_pages"] > MOST_PAGES:
        return []
    sharp, stale = inputs(axes, generator), inputs(axes, generator)
    for name in ("q_nope", "q_pe"):
        sharp[name] *= 16
    unused = torch.ones(axes["num_pages"], dtype=torch.bool, device=generator.device)
    unused[stale["kv_indices"].long()] = False
    for name in ("ckv_cache", "kpe_cache"):
        stale[name][unused] = math.nan
    cases = [sharp, stale]
    if batch > 1:
        gaps, single = torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
        gaps[1::2] = _split(tokens, batch // 2, generator)
        single[batch // 2] = tokens
        cases += [_given(axes, gaps, generator), _given(axes, single, generator)]
    return cases
