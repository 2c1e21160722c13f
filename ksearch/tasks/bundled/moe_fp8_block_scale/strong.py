"""MoE with FP8 block scales in five Triton kernels, nothing of which the CPU has to wait for.

`route` chooses experts and counts the tokens of each local one; `sort` gives every pair of token and local expert a
row, expert by expert; `first_layer` multiplies FP8 tiles, scales each 128 channels, applies SwiGLU and quantises the
result again, a scale for each row and tile; `second_layer` does the other product; `combine` adds up each token's rows.
How many rows there are is known to the GPU alone: grids are for the most that there can be, and what is too much ends
at once.
"""

import torch
import triton
import triton.language as tl

GROUPS, KEPT, TOP, FACTOR = 8, 4, 8, 2.5
BLOCK = 128
FEW = {"rows": 16, "step": 64, "num_warps": 4, "num_stages": 4}
MANY = {"rows": 64, "step": 128, "num_warps": 8, "num_stages": 3}
MOST_OF_FEW = 512  # tokens


@triton.jit
def route(
    logits, bias, offset, expert, place, weight, counts, factor, local,
    experts: tl.constexpr, groups: tl.constexpr, kept: tl.constexpr, top: tl.constexpr,
):  # fmt: skip
    t, e = tl.program_id(0), tl.arange(0, experts)
    s = 1.0 / (1.0 + tl.exp(-tl.load(logits + t * experts + e)))
    choice = tl.reshape(s + tl.load(bias + e).to(tl.float32), (groups, experts // groups))
    member, g = tl.arange(0, experts // groups), tl.arange(0, groups)
    second = tl.where(member[None, :] == tl.argmax(choice, axis=1)[:, None], float("-inf"), choice)
    score = tl.max(choice, axis=1) + tl.max(second, axis=1)
    above = (score[None, :] > score[:, None]) | ((score[None, :] == score[:, None]) & (g[None, :] < g[:, None]))
    rank = tl.sum(above.to(tl.int32), axis=1)
    left = tl.reshape(tl.where((rank < kept)[:, None], choice, float("-inf")), (experts,))
    k = tl.arange(0, top)
    chosen = tl.zeros((top,), tl.int32)
    share = tl.zeros((top,), tl.float32)
    for i in tl.static_range(top):
        best = tl.argmax(left, axis=0)
        chosen = tl.where(k == i, best, chosen)
        share = tl.where(k == i, tl.sum(tl.where(e == best, s, 0.0), axis=0), share)
        left = tl.where(e == best, float("-inf"), left)
    mine = chosen - tl.load(offset)
    here = (mine >= 0) & (mine < local)
    at = t * top + k
    tl.store(weight + at, share / (tl.sum(share, axis=0) + 1e-20) * factor)
    tl.store(expert + at, tl.where(here, mine, -1))
    tl.store(place + at, tl.atomic_add(counts + mine, 1, mask=here), mask=here)


@triton.jit
def sort(expert, place, counts, row, token, pairs, top, local: tl.constexpr, size: tl.constexpr):
    p = tl.program_id(0) * size + tl.arange(0, size)
    mine = tl.load(expert + p, mask=p < pairs, other=-1)
    e = tl.arange(0, local)
    before = tl.sum(tl.where(e[None, :] < mine[:, None], tl.load(counts + e)[None, :], 0), axis=1)
    at = before + tl.load(place + p, mask=mine >= 0, other=0)
    tl.store(row + p, tl.where(mine >= 0, at, -1), mask=p < pairs)
    tl.store(token + at, p // top, mask=mine >= 0)


@triton.jit
def whose(counts, tile, local: tl.constexpr, rows: tl.constexpr):
    """The expert of a tile (`local` if there is none), its first row, and where the expert's rows end."""
    e = tl.arange(0, local)
    count = tl.load(counts + e)
    tiles = (count + rows - 1) // rows
    expert = tl.sum((tl.cumsum(tiles, axis=0) <= tile).to(tl.int32), axis=0)
    start = tl.sum(tl.where(e < expert, count, 0), axis=0)
    first = start + (tile - tl.sum(tl.where(e < expert, tiles, 0), axis=0)) * rows
    return expert, first, start + tl.sum(tl.where(e == expert, count, 0), axis=0)


@triton.jit
def first_layer(
    x, x_scale, weights, scales, counts, token, result, result_scale, tokens, hidden, middle,
    local: tl.constexpr, rows: tl.constexpr, step: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0)
    expert, start, end = whose(counts, tl.program_id(1), local, rows)
    if expert < local:
        row, n, k = start + tl.arange(0, rows), column * step + tl.arange(0, step), tl.arange(0, block)
        inside = row < end
        t = tl.load(token + row, mask=inside, other=0)
        across = hidden // block
        one = weights + expert * 2 * middle * hidden + n[None, :] * hidden + k[:, None]
        two = one + middle * hidden
        scale = scales + (expert * 2 * middle + column * step) // block * across
        other = scale + middle // block * across
        up = tl.zeros((rows, step), tl.float32)
        gate = tl.zeros((rows, step), tl.float32)
        for b in range(across):
            a = tl.load(x + t[:, None] * hidden + (b * block + k)[None, :], mask=inside[:, None], other=0.0)
            size = tl.load(x_scale + b * tokens + t, mask=inside, other=0.0)[:, None]
            up += tl.dot(a, tl.load(one + b * block)) * (size * tl.load(scale + b))
            gate += tl.dot(a, tl.load(two + b * block)) * (size * tl.load(other + b))
        value = up * gate / (1.0 + tl.exp(-gate))
        size = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-12) / 448.0
        value = (value / size[:, None]).to(result.dtype.element_ty)
        tl.store(result + row[:, None] * middle + n[None, :], value, mask=inside[:, None])
        tl.store(result_scale + row * (middle // step) + column, size, mask=inside)


@triton.jit
def second_layer(
    x, x_scale, weights, scales, counts, result, hidden, middle,
    local: tl.constexpr, rows: tl.constexpr, step: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0)
    expert, start, end = whose(counts, tl.program_id(1), local, rows)
    if expert < local:
        row, n, k = start + tl.arange(0, rows), column * block + tl.arange(0, block), tl.arange(0, step)
        inside = row < end
        w = weights + expert * hidden * middle + n[None, :] * middle + k[:, None]
        scale = scales + (expert * hidden // block + column) * (middle // block)
        total = tl.zeros((rows, block), tl.float32)
        for b in range(middle // step):
            a = tl.load(x + row[:, None] * middle + (b * step + k)[None, :], mask=inside[:, None], other=0.0)
            size = tl.load(x_scale + row * (middle // step) + b, mask=inside, other=0.0)[:, None]
            total += tl.dot(a, tl.load(w + b * step)) * (size * tl.load(scale + b * step // block))
        at = result + row[:, None] * hidden + n[None, :]
        tl.store(at, total.to(result.dtype.element_ty), mask=inside[:, None])


@triton.jit
def combine(parts, row, weight, output, hidden, top: tl.constexpr, size: tl.constexpr):
    t, c = tl.program_id(0), tl.program_id(1) * size + tl.arange(0, size)
    total = tl.zeros((size,), tl.float32)
    for k in tl.static_range(top):
        at = tl.load(row + t * top + k)
        part = tl.load(parts + at * hidden + c, mask=tl.where(c < hidden, at, -1) >= 0, other=0.0)
        total += part.to(tl.float32) * tl.load(weight + t * top + k)
    tl.store(output + t * hidden + c, total.to(output.dtype.element_ty), mask=c < hidden)


def run(
    routing_logits, routing_bias, hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale,
    gemm2_weights, gemm2_weights_scale, local_expert_offset,
):  # fmt: skip
    (tokens, hidden), (local, _, middle), device = hidden_states.shape, gemm2_weights.shape, hidden_states.device
    pairs, shape = tokens * TOP, FEW if tokens <= MOST_OF_FEW else MANY
    tiles = min(pairs, pairs // shape["rows"] + local)
    counts = torch.zeros(local, dtype=torch.int32, device=device)
    expert, place, row, token = torch.empty((4, pairs), dtype=torch.int32, device=device)
    weight = torch.empty(pairs, dtype=torch.float32, device=device)
    route[(tokens,)](
        routing_logits, routing_bias, local_expert_offset, expert, place, weight, counts, FACTOR, local,
        experts=routing_logits.shape[1], groups=GROUPS, kept=KEPT, top=TOP, num_warps=1,
    )  # fmt: skip
    sort[(triton.cdiv(pairs, 64),)](expert, place, counts, row, token, pairs, TOP, local=local, size=64)
    between = torch.empty((pairs, middle), dtype=hidden_states.dtype, device=device)
    scale = torch.empty((pairs, middle // shape["step"]), dtype=torch.float32, device=device)
    first_layer[(middle // shape["step"], tiles)](
        hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale, counts, token, between, scale,
        tokens, hidden, middle, local=local, block=BLOCK, **shape,
    )  # fmt: skip
    parts = torch.empty((pairs, hidden), dtype=torch.bfloat16, device=device)
    second_layer[(hidden // BLOCK, tiles)](
        between, scale, gemm2_weights, gemm2_weights_scale, counts, parts, hidden, middle,
        local=local, block=BLOCK, **shape,
    )  # fmt: skip
    output = torch.empty((tokens, hidden), dtype=torch.bfloat16, device=device)
    combine[(tokens, triton.cdiv(hidden, 1024))](parts, row, weight, output, hidden, top=TOP, size=1024, num_warps=4)
    return output
