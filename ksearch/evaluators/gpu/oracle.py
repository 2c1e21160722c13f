"""The oracle of tasks with device "cuda": the same as for CPUs, over GPU memory."""

from __future__ import annotations

import sys

from ksearch.evaluators import oracle
from ksearch.evaluators.gpu.memory import Gpu


def main() -> None:
    oracle.serve(int(sys.argv[1]), Gpu)
