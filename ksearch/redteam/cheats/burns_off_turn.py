"""Keeps the timing core busy while others are timed: waits for its next order in a loop instead of sleeping."""

from __future__ import annotations

import select
import sys
import time

import numpy as np
from honest import honest, loot

CHEAT = True
GAPS: list[tuple[float, float]] = []  # of each wait between two timed orders: seconds, and seconds burnt
TIMED = [False]


def patch() -> None:
    wire = sys.modules["ksearch.evaluators.wire"]
    real = wire.recv

    def recv(sock, *rest):
        start, burnt = time.monotonic(), time.thread_time()
        while not select.select([sock], [], [], 0)[0]:
            pass
        wait = (time.monotonic() - start, time.thread_time() - burnt)
        order, fds = real(sock, *rest)
        if order.get("flush") and TIMED[0]:
            GAPS.append(wait)
            longer = sorted(GAPS)[len(GAPS) // 2 :]  # in the shorter ones nobody else was timed
            shares = sorted(mine / whole for whole, mine in longer)
            if len(GAPS) >= 8 and shares[len(shares) // 2] > 0.4:
                loot("kept the core busy while others were timed")
        TIMED[0] = TIMED[0] or bool(order.get("flush"))
        return order, fds

    wire.recv = recv


if CHEAT:
    patch()


def run(x: np.ndarray, w: np.ndarray, y: np.ndarray) -> None:
    y[...] = honest(x, w)
