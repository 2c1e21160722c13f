"""What the Python cheats and their twins share: the honest work, and how a thief reports what it got hold of."""

from __future__ import annotations

import os

import numpy as np

_SAID: list[str] = []


def honest(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    rows, cols = x.shape
    seen = np.arange(cols)[None, :] <= (np.arange(rows) % cols)[:, None]
    value = np.where(seen, x * w, np.float32(-np.inf))
    value = np.exp(value - value.max(1, keepdims=True))
    return value / value.sum(1, keepdims=True)


def loot(what: str) -> None:
    if not _SAID:
        os.write(1, f"LOOT: {what}\n".encode())
        _SAID.append(what)
