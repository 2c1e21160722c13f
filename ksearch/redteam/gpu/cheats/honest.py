"""What the Python cheats and their twins share: the honest work, and how a thief reports what it got hold of."""

from __future__ import annotations

import os

import torch

_SAID: list[str] = []


def honest(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, dim=1)


def slow(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """As slow as the baseline, so that a saving shows clearly."""
    for _ in range(3):
        y = torch.softmax(x.double() @ w.double(), dim=1).float()
    return y


def loot(what: str) -> None:
    if not _SAID:
        os.write(1, f"LOOT: {what}\n".encode())
        _SAID.append(what)
