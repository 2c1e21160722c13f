"""Hands out one and the same array again and again: each result overwrites the one before."""

from __future__ import annotations

import numpy as np
from honest import honest

CHEAT = True
BUFFERS: dict[tuple[int, ...], np.ndarray] = {}


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    buffer = BUFFERS.setdefault(x.shape, np.empty_like(x))
    buffer[...] = honest(x, w)
    return buffer if CHEAT else buffer.copy()
