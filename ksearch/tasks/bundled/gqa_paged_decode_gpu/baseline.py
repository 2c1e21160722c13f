"""Decode attention over a paged cache with PyTorch, in a few large steps and without waiting for the GPU.

The tokens of all sequences, one after the other, are cut into pieces of at most 128, each of one sequence. The pieces
are a batch: their keys and values are gathered, attention is computed for each, and the pieces of a sequence are
merged by their log-sum-exp. Products take fp32 and may round to TF32, which holds every bfloat16 value exactly.
"""

import math

import torch

torch.backends.cuda.matmul.allow_tf32 = True
PIECE = 128
SM_SCALE = 1 / math.sqrt(128)


def run(q, k_cache, v_cache, kv_indptr, kv_indices):
    batch, heads, dim = q.shape
    pages, _, kv_heads, _ = k_cache.shape
    tokens, group = len(kv_indices), heads // kv_heads
    regular = torch.arange(0, tokens, PIECE, dtype=torch.int32, device=q.device)
    cuts = torch.cat((regular, kv_indptr)).sort().values
    owner = torch.searchsorted(kv_indptr[1:], cuts[:-1], right=True)  # `batch` for empty pieces at the end
    place = cuts[:-1, None] + torch.arange(PIECE, dtype=torch.int32, device=q.device)
    beyond = place >= cuts[1:, None]
    used = kv_indices.index_select(0, place.clamp_(max=tokens - 1).view(-1))

    def gathered(cache):  # (pieces, kv_heads, PIECE, dim)
        found = cache.view(pages, kv_heads * dim).index_select(0, used).view(-1, PIECE, kv_heads, dim)
        return found.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format)

    queries = q.float().index_select(0, owner.clamp(max=batch - 1)).view(-1, kv_heads, group, dim)
    scores = (queries @ gathered(k_cache).transpose(2, 3)).mul_(SM_SCALE)
    logs = torch.log_softmax(scores.masked_fill_(beyond[:, None, None], -1e30), dim=-1)
    lse = (scores[..., 0] - logs[..., 0]).view(-1, heads)  # of each piece: its first token is always inside
    out = (logs.exp_() @ gathered(v_cache)).view(-1, heads, dim)

    # Merge. One row more than there are sequences takes the empty pieces.
    most = torch.full((batch + 1, heads), -math.inf, device=q.device)
    most.scatter_reduce_(0, owner[:, None].expand(-1, heads), lse, "amax")
    share = lse.sub_(most.index_select(0, owner)).exp_()
    total = torch.zeros_like(most).index_add_(0, owner, share)[:batch]
    merged = torch.zeros((batch + 1, heads, dim), device=q.device).index_add_(0, owner, out * share[..., None])[:batch]
    output = (merged / total.clamp(min=1e-30)[..., None]).to(q.dtype)
    return output, torch.add(total.log2(), most[:batch], alpha=math.log2(math.e))
