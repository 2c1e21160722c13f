"""Leaves with exit code 0 while it is imported."""

from __future__ import annotations

import os

import torch
from honest import honest

CHEAT = True

if CHEAT:
    os._exit(0)


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return honest(x, w)
