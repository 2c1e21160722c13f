"""Sleeps until somebody loses patience."""

from __future__ import annotations

import time

import torch
from honest import honest

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    if CHEAT:
        time.sleep(10_000)
    return honest(x, w)
