"""Triton's own default: tl.dot in TF32 where the task asks for float32."""

from __future__ import annotations

import torch
from honest_triton import launch

CHEAT = True


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    launch(x, w, y, "tf32" if CHEAT else "ieee")
    return y
