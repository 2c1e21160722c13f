"""Multi-head latent attention (MLA), causal prefill over a paged cache, on a GPU: what is given, and what is right.

The inputs hold bfloat16, whose products are exact in float32; sums are in float32 without TF32.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch

HEADS, CKV, KPE = 16, 512, 64
SM_SCALE = 0.1352337747812271
MOST_SCORES = 1 << 26  # computed at once: 256 MiB
MOST_PAGES, MOST_QUERIES = 200_000, 10_000  # no awkward cases for larger caches, and more queries times sequences

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


def _given(axes: dict[str, int], queries: torch.Tensor, kept: torch.Tensor, generator: torch.Generator) -> Tensors:
    """Inputs for sequences with so many queries and tokens in the cache; no page belongs to two sequences."""
    total, pages, tokens, place = axes["total_q"], axes["num_pages"], axes["num_kv_indices"], generator.device

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, generator=generator, device=place)

    def bounds(lengths: torch.Tensor) -> torch.Tensor:
        return torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(place, torch.int32)

    return {
        "q_nope": normal(total, HEADS, CKV),
        "q_pe": normal(total, HEADS, KPE),
        "ckv_cache": normal(pages, 1, CKV),
        "kpe_cache": normal(pages, 1, KPE),
        "qo_indptr": bounds(queries),
        "kv_indptr": bounds(kept),
        "kv_indices": torch.randperm(pages, generator=generator, device=place)[:tokens].to(torch.int32),
    }


def inputs(axes: dict[str, int], generator: torch.Generator) -> Tensors:
    """Queries are the last tokens of their sequences: what was there before them is split apart."""
    queries = _split(axes["total_q"], axes["batch_size"], generator)
    before = _split(axes["num_kv_indices"] - axes["total_q"], axes["batch_size"], generator)
    return _given(axes, queries, queries + before, generator)


def reference(inputs: Tensors, axes: dict[str, int]) -> Tensors:
    queries = torch.cat((inputs["q_nope"], inputs["q_pe"]), dim=-1).float()
    out = queries.new_zeros((len(queries), HEADS, CKV))
    lse = queries.new_full((len(queries), HEADS), -math.inf)
    bounds = zip(pairwise(inputs["qo_indptr"].tolist()), pairwise(inputs["kv_indptr"].tolist()), strict=True)
    for (first, last), (start, end) in bounds:
        if first >= last or start >= end:
            continue
        used = inputs["kv_indices"][start:end].long()
        values = inputs["ckv_cache"][used, 0].float()  # (tokens, CKV): the first part of each key, too
        keys = torch.cat((values, inputs["kpe_cache"][used, 0].float()), dim=-1)
        before = len(used) - (last - first)  # tokens of the sequence ahead of its first query
        step = max(1, MOST_SCORES // (HEADS * len(used)))
        for at in range(first, last, step):
            part = slice(at, min(at + step, last))
            out[part], lse[part] = _causal(queries[part], keys, values, before + at - first)
    return {"output": out, "lse": lse}


def _causal(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of consecutive queries, the first of them at `position`, to the keys up to each one's own.

    A query that sees no key, which the task does not have, gets 0 and -inf.
    """
    seen = max(0, min(len(keys), position + len(queries)))
    scores = queries @ keys[:seen].T * SM_SCALE  # queries, heads, tokens
    own = position + torch.arange(len(queries), device=keys.device)
    hidden = torch.arange(seen, device=keys.device) > own[:, None]
    scores.masked_fill_(hidden[:, None], -math.inf)
    weights = torch.softmax(scores, dim=-1).masked_fill_(own[:, None, None] < 0, 0)
    return weights @ values[:seen], torch.logsumexp(scores, dim=-1) / math.log(2)


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[Tensors]:
    """Scores beyond what exp can take, unused pages full of NaN, sequences without queries or tokens, only one full."""
    batch, total, tokens = axes["batch_size"], axes["total_q"], axes["num_kv_indices"]
    if axes["num_pages"] > MOST_PAGES or total * batch > MOST_QUERIES:
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
        single = torch.zeros(batch, dtype=torch.int64)
        single[batch // 2] = 1
        cases.append(_given(axes, single * total, single * tokens, generator))
        cases.append(_given(axes, *_gaps(axes, generator), generator))
    return cases


def _gaps(axes: dict[str, int], generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """(queries, tokens in the cache): only every second sequence has queries; the first of these has no tokens."""
    batch, total, tokens = axes["batch_size"], axes["total_q"], axes["num_kv_indices"]
    queries, before = (torch.zeros(batch, dtype=torch.int64) for _ in range(2))
    queries[1::2] = _split(total, batch // 2, generator)
    lost = int(queries[1])  # tokens that its queries would have; another sequence gets them
    before[:] = _split(tokens - total, batch, generator)
    kept = queries + before
    kept[0] += lost + before[1]
    kept[1] = 0
    return queries, kept
