"""Causal MLA prefill over a paged cache with PyTorch: all sequences padded to the longest, in a few large steps.

Queries and latents are gathered into (sequence, place) and computed as one batch, some queries of each sequence at a
time where the scores would take too much memory. The longest lengths are read back: one wait for the GPU. Products
take fp32 and may round to TF32, which holds every bfloat16 value exactly.
"""

import math

import torch

torch.backends.cuda.matmul.allow_tf32 = True
SM_SCALE = 0.1352337747812271
MOST_SCORES = 1 << 28  # computed at once: 1 GiB


def run(q_nope, q_pe, ckv_cache, kpe_cache, qo_indptr, kv_indptr, kv_indices):
    total, heads, ckv = q_nope.shape
    asked, kept = qo_indptr.diff(), kv_indptr.diff()
    queries, tokens, before = torch.stack((asked, kept, kept - asked)).amax(dim=1).tolist()
    batch = len(asked)
    query, token = (torch.arange(n, dtype=torch.int32, device=q_nope.device) for n in (queries, tokens))

    def rows(source, which, length):  # (batch, length, ...)
        return source.index_select(0, which.view(-1)).view(batch, length, *source.shape[1:])

    used = rows(kv_indices, (kv_indptr[:-1, None] + token).clamp_(max=len(kv_indices) - 1), tokens)
    values = rows(ckv_cache.squeeze(1), used, tokens).float()
    positions = rows(kpe_cache.squeeze(1), used, tokens).float()
    which = (qo_indptr[:-1, None] + query).clamp_(max=total - 1)
    nope, rope = rows(q_nope, which, queries), rows(q_pe, which, queries)
    own = (kept - asked)[:, None] + query  # each query's place in its sequence
    out = torch.empty_like(nope)
    lse = torch.empty(nope.shape[:-1], device=q_nope.device)

    step = max(1, MOST_SCORES // (batch * heads * tokens))
    for at in range(0, queries, step):
        part = slice(at, min(at + step, queries))
        seen = max(1, min(tokens, before + part.stop))
        a, b = (x[:, part].float().flatten(1, 2) for x in (nope, rope))
        scores = a @ values[:, :seen].transpose(1, 2)
        scores = torch.baddbmm(scores, b, positions[:, :seen].transpose(1, 2), beta=SM_SCALE, alpha=SM_SCALE)
        scores = scores.view(batch, -1, heads, seen)
        logs = torch.log_softmax(scores.masked_fill_((token[:seen] > own[:, part, None])[:, :, None], -1e30), dim=-1)
        lse[:, part] = scores[..., 0] - logs[..., 0]  # who sees anything sees the first token
        out[:, part] = (logs.exp_().flatten(1, 2) @ values[:, :seen]).view(batch, -1, heads, ckv)

    # Back to one query after the other; a sequence without tokens gives 0 and -inf.
    number = torch.arange(total, dtype=torch.int32, device=q_nope.device)
    owner = torch.searchsorted(qo_indptr[1:], number, right=True)
    row = owner * queries + number - qo_indptr[owner]
    blind = (kept[owner] == 0)[:, None]
    output = out.view(-1, heads, ckv).index_select(0, row).masked_fill_(blind[..., None], 0)
    found = lse.view(-1, heads).index_select(0, row).mul_(math.log2(math.e))
    return output, found.masked_fill_(blind, -math.inf)
