"""Opens the evaluator's own source for writing. (It writes nothing: that it could is enough.)"""

from __future__ import annotations

import sys

import numpy as np
from honest import honest, loot

CHEAT = True


def attempt() -> None:
    try:
        with open(sys.modules["ksearch.evaluators.runner"].__file__, "ab"):
            loot("may write to the evaluator's source")
    except OSError:
        pass


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    if CHEAT:
        attempt()
    return honest(x, w)
