"""MLA decode over a paged cache with PyTorch, in a few large steps and without waiting for the GPU.

The tokens of all sequences, one after the other, are cut into pieces of at most 128, each of one sequence. The pieces
are a batch: their latents are gathered, attention is computed for each, and the pieces of a sequence are merged by
their log-sum-exp. Products take fp32 and may round to TF32, which holds every bfloat16 value exactly.
"""

import math

import torch

torch.backends.cuda.matmul.allow_tf32 = True
PIECE = 128
SM_SCALE = 0.1352337747812271


def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices):
    batch, heads, ckv = q_nope.shape
    tokens, place_of = len(kv_indices), q_nope.device
    regular = torch.arange(0, tokens, PIECE, dtype=torch.int32, device=place_of)
    cuts = torch.cat((regular, kv_indptr)).sort().values
    owner = torch.searchsorted(kv_indptr[1:], cuts[:-1], right=True)  # `batch` for empty pieces at the end
    place = cuts[:-1, None] + torch.arange(PIECE, dtype=torch.int32, device=place_of)
    beyond = place >= cuts[1:, None]
    used = kv_indices.index_select(0, place.clamp_(max=tokens - 1).view(-1))
    values = ckv_cache.squeeze(1).index_select(0, used).float().view(-1, PIECE, ckv)
    positions = kpe_cache.squeeze(1).index_select(0, used).float().view(len(values), PIECE, -1)

    asking = owner.clamp(max=batch - 1)
    scores = q_nope.float().index_select(0, asking) @ values.transpose(1, 2)
    turned = q_pe.float().index_select(0, asking)
    scores = torch.baddbmm(scores, turned, positions.transpose(1, 2), beta=SM_SCALE, alpha=SM_SCALE)
    logs = torch.log_softmax(scores.masked_fill_(beyond[:, None], -1e30), dim=-1)
    lse = scores[..., 0] - logs[..., 0]  # of each piece: its first token is always inside
    out = logs.exp_() @ values

    # Merge. One row more than there are sequences takes the empty pieces.
    most = torch.full((batch + 1, heads), -math.inf, device=place_of)
    most.scatter_reduce_(0, owner[:, None].expand(-1, heads), lse, "amax")
    share = lse.sub_(most.index_select(0, owner)).exp_()
    total = torch.zeros_like(most).index_add_(0, owner, share)[:batch]
    merged = torch.zeros((batch + 1, heads, ckv), device=place_of).index_add_(0, owner, out * share[..., None])[:batch]
    output = (merged / total.clamp(min=1e-30)[..., None]).to(q_nope.dtype)
    return output, torch.add(total.log2(), most[:batch], alpha=math.log2(math.e))
