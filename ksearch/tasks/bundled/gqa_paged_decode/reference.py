"""Decode attention with grouped queries over a paged cache: what the right answer is, in float64."""

from __future__ import annotations

import numpy as np


def _lengths(sequences: int, tokens: int, rng: np.random.Generator) -> np.ndarray:
    """Ragged lengths that add up to `tokens`; with two sequences or more, one of them is empty."""
    if sequences == 1:
        return np.array([tokens], dtype=np.int32)
    shares = rng.dirichlet(np.full(sequences - 1, 2.0))
    ends = np.floor(np.cumsum(shares) * tokens + 1e-6).astype(np.int64)
    ends[-1] = tokens
    lengths = np.diff(ends, prepend=0)
    return np.insert(lengths, rng.integers(sequences), 0).astype(np.int32)


def _pages(lengths: np.ndarray, page: int, width: int, pages: int, rng: np.random.Generator) -> np.ndarray:
    """Each sequence gets its pages from anywhere in the cache; unused entries of the table are -1."""
    table = np.full((len(lengths), width), -1, dtype=np.int32)
    free = iter(rng.permutation(pages))
    for sequence, length in enumerate(lengths):
        for slot in range(-(-int(length) // page)):
            table[sequence, slot] = next(free)
    return table


def _make(axes: dict[str, int], lengths: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    heads, group, dim = axes["num_kv_heads"], axes["group_size"], axes["head_dim"]
    page, tokens, sequences = axes["page_size"], axes["total_tokens"], axes["batch_size"]
    width = -(-tokens // page)
    pages = width + sequences
    return {
        "q": rng.standard_normal((sequences, heads * group, dim), dtype=np.float32),
        "k_cache": rng.standard_normal((pages, page, heads, dim), dtype=np.float32),
        "v_cache": rng.standard_normal((pages, page, heads, dim), dtype=np.float32),
        "page_table": _pages(lengths, page, width, pages, rng),
        "seq_lens": lengths,
    }


def inputs(axes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    return _make(axes, _lengths(axes["batch_size"], axes["total_tokens"], rng), rng)


def reference(inputs: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    heads, group, dim, page = (axes[a] for a in ("num_kv_heads", "group_size", "head_dim", "page_size"))
    sequences = axes["batch_size"]
    out = np.zeros((sequences, heads * group, dim))
    lse = np.full((sequences, heads * group), -np.inf)
    for sequence in range(sequences):
        length = int(inputs["seq_lens"][sequence])
        if length == 0:
            continue
        used = inputs["page_table"][sequence, : -(-length // page)]
        # pages of (page, heads, dim) -> (heads, length, dim)
        k = inputs["k_cache"][used].reshape(-1, heads, dim)[:length].transpose(1, 0, 2).astype(np.float64)
        v = inputs["v_cache"][used].reshape(-1, heads, dim)[:length].transpose(1, 0, 2).astype(np.float64)
        q = inputs["q"][sequence].reshape(heads, group, dim).astype(np.float64)
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(dim)
        top = scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(axis=-1, keepdims=True)
        out[sequence] = (weights / total @ v).reshape(heads * group, dim)
        lse[sequence] = ((top + np.log(total)) / np.log(2.0)).reshape(heads * group)
    return {"out": out, "lse": lse}


def awkward(axes: dict[str, int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Sharp scores, unused cache slots full of NaN, and all tokens in a single sequence."""
    sharp = inputs(axes, rng)
    sharp["q"] *= 6
    cases = [sharp, _poisoned(inputs(axes, rng), axes)]
    if axes["batch_size"] > 1:
        lengths = np.zeros(axes["batch_size"], dtype=np.int32)
        lengths[rng.integers(len(lengths))] = axes["total_tokens"]
        cases.append(_make(axes, lengths, rng))
    return cases


def _poisoned(case: dict[str, np.ndarray], axes: dict[str, int]) -> dict[str, np.ndarray]:
    """Whatever no sequence owns becomes NaN: a kernel that reads it shows it."""
    page = axes["page_size"]
    owned = np.zeros(case["k_cache"].shape[:2], dtype=bool)
    for sequence, length in enumerate(case["seq_lens"]):
        for position in range(int(length)):
            owned[case["page_table"][sequence, position // page], position % page] = True
    for name in ("k_cache", "v_cache"):
        case[name][~owned] = np.nan
    return case
