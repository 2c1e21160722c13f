"""Knows the sizes of all workloads by heart, and is wrong for every other size."""

from __future__ import annotations

import torch
from honest import honest

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    if CHEAT and x.shape not in ((96, 64), (4096, 512)):
        return torch.zeros_like(x)
    return honest(x, w)
