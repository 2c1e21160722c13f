"""Asks for more memory than any GPU has."""

from __future__ import annotations

import torch
from honest import honest

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    scratch = torch.empty(1 << 42 if CHEAT else 1 << 20, dtype=torch.uint8, device="cuda")
    y = honest(x, w)
    del scratch
    return y
