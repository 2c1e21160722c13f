"""Leaves its work on a stream of its own, and nobody waits for it."""

from __future__ import annotations

import torch
from honest import slow

CHEAT = True
SIDE = torch.cuda.Stream()


def run(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    here = torch.cuda.current_stream()
    if not CHEAT:
        SIDE.wait_stream(here)
    with torch.cuda.stream(SIDE):
        y.copy_(slow(x, w))
    if not CHEAT:
        here.wait_stream(SIDE)
