"""MoE with FP8 block scales in PyTorch, in a few large steps: weights of the experts in use become bfloat16.

Pairs of token and local expert are sorted by expert; both layers are one grouped matrix product each. How many pairs
and experts there are is read back: one wait for the GPU.
"""

import torch
from torch.nn import functional

BLOCK, GROUPS, KEPT, TOP, FACTOR = 128, 8, 4, 8, 2.5


def route(logits, bias):
    s = torch.sigmoid(logits)
    choice = (s + bias).view(len(s), GROUPS, -1)
    groups = choice.topk(2, dim=-1).values.sum(dim=-1).topk(KEPT, dim=-1).indices
    shut = torch.ones((len(s), GROUPS), dtype=torch.bool, device=s.device).scatter_(1, groups, False)
    experts = choice.masked_fill(shut.unsqueeze(-1), -torch.inf).flatten(1).topk(TOP, dim=-1).indices
    weights = s.gather(1, experts)
    return experts, weights * (FACTOR / (weights.sum(dim=-1, keepdim=True) + 1e-20))


def picked(values, which):  # there is no indexing of FP8
    return values.view(torch.uint8).index_select(0, which).view(values.dtype).bfloat16()


def widened(weights, scales, which):
    wide = picked(weights, which)
    experts, rows, columns = wide.shape
    blocks = wide.view(experts, rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    blocks.mul_(scales.index_select(0, which)[:, :, None, :, None])
    return wide.transpose(1, 2)


def run(
    routing_logits, routing_bias, hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale,
    gemm2_weights, gemm2_weights_scale, local_expert_offset,
):  # fmt: skip
    tokens, hidden = hidden_states.shape
    local = len(gemm1_weights)
    experts, weights = route(routing_logits, routing_bias)
    mine = (experts - local_expert_offset).flatten()
    mine = torch.where((mine >= 0) & (mine < local), mine, local)
    counts = (mine.unsqueeze(1) == torch.arange(local, device=mine.device)).sum(dim=0)
    pairs, used = torch.stack((counts.sum(), counts.count_nonzero())).tolist()
    output = torch.zeros((tokens, hidden), dtype=torch.float32, device=mine.device)
    if pairs == 0:
        return output.bfloat16()
    pair = mine.argsort(stable=True)[:pairs]
    which = (counts == 0).int().argsort(stable=True)[:used]
    ends = counts.index_select(0, which).cumsum(0).int()
    token = pair // TOP

    x = picked(hidden_states, token).view(pairs, -1, BLOCK)
    x = x.mul_(hidden_states_scale.T.index_select(0, token).unsqueeze(-1)).view(pairs, hidden)
    up, gate = functional.grouped_mm(x, widened(gemm1_weights, gemm1_weights_scale, which), offs=ends).chunk(2, dim=-1)
    x = functional.silu(gate).mul_(up)
    x = functional.grouped_mm(x, widened(gemm2_weights, gemm2_weights_scale, which), offs=ends)
    return output.index_add_(0, token, x * weights.flatten()[pair].unsqueeze(1)).bfloat16()
