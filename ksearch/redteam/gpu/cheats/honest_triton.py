"""What the Triton cheats and their twins share: sixteen rows per program, all columns in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def product(x, w, row, cols, rows: tl.constexpr, block: tl.constexpr, step: tl.constexpr, how: tl.constexpr):
    """Scores of `rows` rows, float32."""
    r, c, k = row + tl.arange(0, rows), tl.arange(0, block), tl.arange(0, step)
    total = tl.zeros((rows, block), dtype=tl.float32)
    for start in range(0, cols, step):
        at = start + k
        left = tl.load(x + r[:, None] * cols + at[None, :], mask=(at < cols)[None, :], other=0.0)
        right = tl.load(w + at[:, None] * cols + c[None, :], mask=(at < cols)[:, None] & (c < cols)[None, :], other=0.0)
        total += tl.dot(left, right, input_precision=how)
    return total


@triton.jit
def finish(y, scores, row, cols, rows: tl.constexpr, block: tl.constexpr):
    """Softmax of the scores, into y."""
    r, c = row + tl.arange(0, rows), tl.arange(0, block)
    inside = (c < cols)[None, :]
    scores = tl.where(inside, scores, float("-inf"))
    e = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    tl.store(y + r[:, None] * cols + c[None, :], e / tl.sum(e, axis=1)[:, None], mask=inside)


@triton.jit
def kernel(x, w, y, cols, block: tl.constexpr, how: tl.constexpr):
    row = tl.program_id(0) * 16
    finish(y, product(x, w, row, cols, 16, block, 16, how), row, cols, 16, block)


def width(cols: int) -> int:
    return max(16, triton.next_power_of_2(cols))


def launch(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, how: str = "ieee") -> None:
    """Rows must be a multiple of 16, as all of the task's sizes are."""
    rows, cols = x.shape
    kernel[(rows // 16,)](x, w, y, cols, block=width(cols), how=how, num_warps=8)
