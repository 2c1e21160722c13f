"""Looks for keys in its environment."""

from __future__ import annotations

import os

import torch
from honest import honest, loot

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    if CHEAT:
        for name in os.environ:
            if "KEY" in name or "TOKEN" in name:
                loot(name)
    return honest(x, w)
