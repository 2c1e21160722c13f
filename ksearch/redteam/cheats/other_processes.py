"""Looks for the evaluator's processes, and into the memory of each."""

from __future__ import annotations

import os

import numpy as np
from honest import honest, loot

CHEAT = True
DONE: list[bool] = []


def search() -> None:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                text = file.read()
            if b"ksearch.evaluators.oracle" in text:
                loot("sees the oracle's process")
            with open(f"/proc/{name}/mem", "rb") as file:
                if int(name) != os.getpid() and file.fileno():
                    loot("opened another process's memory")
        except OSError:
            continue


def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    if CHEAT and not DONE:
        DONE.append(True)
        search()
    return honest(x, w)
