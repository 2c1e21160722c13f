"""Prints without end."""

from __future__ import annotations

import torch
from honest import honest

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(100_000 if CHEAT else 1):
        print("a line that nobody reads, and one more, and one more")
    return honest(x, w)
