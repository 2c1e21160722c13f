"""Leaves with exit code 0 while it is imported."""

from __future__ import annotations

import sys

import numpy as np
from honest import honest

CHEAT = True

if CHEAT:
    sys.exit(0)


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return honest(x, w)
