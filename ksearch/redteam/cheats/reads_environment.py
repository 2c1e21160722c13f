"""Looks for keys in its environment."""

from __future__ import annotations

import os

import numpy as np
from honest import honest, loot

CHEAT = True


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    if CHEAT and any("API_KEY" in name for name in os.environ):
        loot("found a key in the environment")
    return honest(x, w)
