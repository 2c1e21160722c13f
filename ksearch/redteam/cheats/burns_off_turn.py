"""Keeps the timing core busy while others are timed: waits for its next order in a loop instead of sleeping."""

from __future__ import annotations

import select
import signal
import sys
import time

import numpy as np
from honest import honest, loot

CHEAT = True
STOPS = [0]  # how often it has been stopped and continued
BURNT: list[float] = []  # seconds, of each wait between timed orders in which it was not stopped


def stopped(*_: object) -> None:
    STOPS[0] += 1


def patch() -> None:
    signal.signal(signal.SIGCONT, stopped)
    wire = sys.modules["ksearch.evaluators.wire"]
    real, timed = wire.recv, [False]

    def recv(sock, *rest):
        before, burnt = STOPS[0], time.thread_time()
        while not select.select([sock], [], [], 0)[0]:
            pass
        order, fds = real(sock, *rest)
        if order.get("flush") and timed[0] and STOPS[0] == before:
            BURNT.append(time.thread_time() - burnt)
            if len(BURNT) >= 4 and sum(BURNT) > 0.002:
                loot("kept the core busy while others were timed")
        timed[0] = timed[0] or bool(order.get("flush"))
        return order, fds

    wire.recv = recv


if CHEAT:
    patch()


def run(x: np.ndarray, w: np.ndarray, y: np.ndarray) -> None:
    y[...] = honest(x, w)
