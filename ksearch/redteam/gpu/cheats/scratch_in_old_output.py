"""Saves memory by using the output of an early call as scratch space for later ones."""

from __future__ import annotations

import torch
from honest import honest

CHEAT = True
OUTPUTS: list[torch.Tensor] = []
CALLS = [0]
OWN = torch.zeros(64, device="cuda")


def run(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    CALLS[0] += 1
    if CALLS[0] == 3:
        OUTPUTS.append(y.view(-1)[:64])
    scratch = OUTPUTS[0] if CHEAT and CALLS[0] > 40 else OWN
    scratch.fill_(float(CALLS[0]))
    y.copy_(honest(x, w))
