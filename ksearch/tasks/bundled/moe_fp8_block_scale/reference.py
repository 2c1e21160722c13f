"""MoE with FP8 block scales and DeepSeek routing, one GPU's share: what is given, and what the right answer is.

The reference multiplies values by their scales in float32 and sums in float32 without TF32, one expert after the
other. It takes its sizes from the arrays; `inputs` takes them from the constants below.
"""

from __future__ import annotations

import torch

HIDDEN, INTERMEDIATE, BLOCK = 7168, 2048, 128
EXPERTS, LOCAL, GROUPS, KEPT, TOP = 256, 32, 8, 4, 8
FACTOR = 2.5
MARGIN = 1e-4  # the least distance between what is chosen and what is not
MOST_DRAWS = 1000
LARGEST = 128  # tokens: no awkward cases beyond
FP8 = torch.float8_e4m3fn

Tensors = dict[str, torch.Tensor]


def route(logits: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Experts (tokens, TOP) and their weights; how far the choice is from another one (tokens,)."""
    s = torch.sigmoid(logits)
    choice = (s + bias.float()).view(len(s), GROUPS, -1)
    groups, which = choice.topk(2, dim=-1).values.sum(dim=-1).topk(KEPT + 1, dim=-1)
    shut = torch.ones((len(s), GROUPS), dtype=torch.bool, device=s.device).scatter_(1, which[:, :KEPT], False)
    best, experts = choice.masked_fill(shut.unsqueeze(-1), -torch.inf).flatten(1).topk(TOP + 1, dim=-1)
    gap = torch.minimum(groups[:, -2] - groups[:, -1], best[:, -2] - best[:, -1])
    experts = experts[:, :TOP]
    weights = s.gather(1, experts)
    return experts, weights / (weights.sum(dim=-1, keepdim=True) + 1e-20) * FACTOR, gap


# --- inputs


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def _logits(tokens: int, generator: torch.Generator, bias: torch.Tensor, common: torch.Tensor) -> torch.Tensor:
    """Each token leans towards the experts of one of four topics. Rows too close to another choice are redrawn."""
    topics = 0.5 * _normal(generator, 4, EXPERTS)
    logits = torch.empty((tokens, EXPERTS), device=generator.device)
    left = torch.arange(tokens, device=generator.device)
    while len(left):
        topic = torch.randint(4, (len(left),), generator=generator, device=generator.device)
        logits[left] = common - 1 + topics[topic] + _normal(generator, len(left), EXPERTS)
        left = left[route(logits[left], bias)[2] < MARGIN]
    return logits


def _enough(experts: torch.Tensor, first: int) -> bool:
    """Is there as much to do as the floor in task.toml says, at least?"""
    tokens = len(experts)
    here = (experts >= first) & (experts < first + LOCAL)
    found = len(experts[here].unique()), int(here.sum()), int(here.any(dim=1).sum())
    least = min(LOCAL - 1, (tokens + 3) // 4, 22 + tokens // 100), (tokens + 1) // 2, (tokens + 3) // 4
    return all(n >= m for n, m in zip(found, least, strict=True))


def _routing(tokens: int, generator: torch.Generator) -> Tensors:
    """Logits, a bias that takes back some of what makes experts popular, and which experts are local."""
    for _ in range(MOST_DRAWS):
        common = 0.4 * _normal(generator, EXPERTS)
        bias = (0.03 * _normal(generator, EXPERTS) - 0.07 * common).bfloat16()
        logits = _logits(tokens, generator, bias, common)
        share = torch.randint(EXPERTS // LOCAL, (1,), generator=generator, device=generator.device)
        offset = (share * LOCAL).int()
        if _enough(route(logits, bias)[0], int(offset)):
            return {"routing_logits": logits, "routing_bias": bias, "local_expert_offset": offset}
    raise RuntimeError(f"no routing of {tokens} tokens with enough to do in {MOST_DRAWS} draws")


def _hidden(tokens: int, generator: torch.Generator) -> Tensors:
    """Normal, blocks of 128 channels of differing size, each token's mean square 1, as after RMSNorm; quantised."""
    x = _normal(generator, tokens, HIDDEN // BLOCK, BLOCK)
    size = torch.exp(0.4 * _normal(generator, HIDDEN // BLOCK) + 0.2 * _normal(generator, tokens, HIDDEN // BLOCK))
    x *= (size / size.square().mean(dim=-1, keepdim=True).sqrt()).unsqueeze(-1)
    scale = x.abs().amax(dim=-1) / 448
    x = (x / scale.unsqueeze(-1)).to(FP8).view(tokens, HIDDEN)
    return {"hidden_states": x, "hidden_states_scale": scale.T.contiguous()}


def _weights(rows: int, columns: int, gain: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal with standard deviation gain / sqrt(columns), blocks of differing size; quantised expert by expert."""
    down, across = rows // BLOCK, columns // BLOCK
    weights = torch.empty((LOCAL, down, BLOCK, across, BLOCK), dtype=FP8, device=generator.device)
    scales = torch.empty((LOCAL, down, across), device=generator.device)
    for expert in range(LOCAL):
        size = torch.exp(0.4 * _normal(generator, down, 1, across, 1) - 0.16) * gain / columns**0.5
        w = _normal(generator, down, BLOCK, across, BLOCK).mul_(size)
        scales[expert] = w.abs().amax(dim=(1, 3)) / 448
        weights[expert] = w.div_(scales[expert][:, None, :, None]).to(FP8)
    return weights.view(LOCAL, rows, columns), scales


def _given(routing: Tensors, generator: torch.Generator) -> Tensors:
    hidden = _hidden(len(routing["routing_logits"]), generator)
    first, first_scale = _weights(2 * INTERMEDIATE, HIDDEN, 1.0, generator)
    # The gain makes outputs of one expert at the usual weight of 1/8 of FACTOR about 1.
    second, second_scale = _weights(HIDDEN, INTERMEDIATE, 5.0, generator)
    return {
        "routing_logits": routing["routing_logits"],
        "routing_bias": routing["routing_bias"],
        **hidden,
        "gemm1_weights": first,
        "gemm1_weights_scale": first_scale,
        "gemm2_weights": second,
        "gemm2_weights_scale": second_scale,
        "local_expert_offset": routing["local_expert_offset"],
    }


def inputs(axes: dict[str, int], generator: torch.Generator) -> Tensors:
    return _given(_routing(axes["seq_len"], generator), generator)


# --- the right answer


def _widened(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """(rows, columns) times the scale of each block, in float32."""
    rows, columns = values.shape
    down, across = scale.shape
    blocks = values.float().view(down, rows // down, across, columns // across)
    return (blocks * scale[:, None, :, None]).view(rows, columns)


def reference(inputs: Tensors, axes: dict[str, int]) -> Tensors:
    experts, weights, _ = route(inputs["routing_logits"], inputs["routing_bias"])
    x = _widened(inputs["hidden_states"], inputs["hidden_states_scale"].T)
    first, output = int(inputs["local_expert_offset"]), torch.zeros_like(x)
    for local in range(len(inputs["gemm1_weights"])):
        token, place = (experts == first + local).nonzero(as_tuple=True)
        if len(token) == 0:
            continue
        w1 = _widened(inputs["gemm1_weights"][local], inputs["gemm1_weights_scale"][local])
        up, gate = (x[token] @ w1.T).chunk(2, dim=-1)
        w2 = _widened(inputs["gemm2_weights"][local], inputs["gemm2_weights_scale"][local])
        result = (torch.nn.functional.silu(gate) * up) @ w2.T
        output.index_add_(0, token, result * weights[token, place].unsqueeze(-1))
    return {"output": output}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[Tensors]:
    """No token has a local expert; the second half has none but the same eight local ones, the first none; scores that
    are all negative with their bias. All with the same weights. No cases for many tokens.
    """
    tokens = axes["seq_len"]
    if tokens > LARGEST:
        return []
    given = inputs(axes, generator)
    bias, first = given["routing_bias"], int(given["local_expert_offset"])
    elsewhere = torch.zeros(EXPERTS, device=bias.device)
    elsewhere[first : first + LOCAL] = -12  # so that their group is never kept
    nowhere = _logits(tokens, generator, bias, elsewhere)
    eight = first + torch.randperm(LOCAL, generator=generator, device=bias.device)[:TOP]
    crowded, half = nowhere.clone(), tokens // 2
    crowded[half:] -= 8
    crowded[half:, eight] = _normal(generator, tokens - half, TOP) + 4
    negative = (bias.float() - 2).bfloat16()
    low = _logits(tokens, generator, negative, torch.zeros_like(elsewhere))
    return [
        {**given, "routing_logits": nowhere},
        {**given, "routing_logits": crowded},
        {**given, "routing_logits": low, "routing_bias": negative},
    ]
