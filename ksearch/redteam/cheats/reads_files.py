"""Looks for other people's files in the temporary folders."""

from __future__ import annotations

import os

import numpy as np
from honest import honest, loot

CHEAT = True
DONE: list[bool] = []


def search() -> None:
    for top in ("/tmp", "/var/tmp", "/dev/shm"):
        for folder, _, files in os.walk(top):
            for name in files:
                if name == "redteam-secret":
                    try:
                        with open(os.path.join(folder, name), "rb") as file:
                            if file.read():
                                loot("read somebody's file")
                    except OSError:
                        pass


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    if CHEAT and not DONE:
        DONE.append(True)
        search()
    return honest(x, w)
