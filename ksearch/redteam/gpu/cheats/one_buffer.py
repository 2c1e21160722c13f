"""Hands out one and the same tensor again and again: each result overwrites the one before."""

from __future__ import annotations

import torch
from honest import honest

CHEAT = True
BUFFERS: dict[torch.Size, torch.Tensor] = {}


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    buffer = BUFFERS.setdefault(x.shape, torch.empty_like(x))
    buffer.copy_(honest(x, w))
    return buffer if CHEAT else buffer.clone()
