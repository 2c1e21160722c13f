"""Returns float64 where the task asks for float32."""

from __future__ import annotations

import numpy as np
from honest import honest

CHEAT = True


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    result = honest(x, w)
    return result.astype(np.float64) if CHEAT else result
