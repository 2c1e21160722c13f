"""The warm template of tasks with device "cuda": torch and, where installed, Triton are imported; no GPU is touched."""

from __future__ import annotations

import importlib.util
import sys

import torch  # noqa: F401

from ksearch.evaluators import template
from ksearch.evaluators.gpu import runner


def main() -> None:
    if importlib.util.find_spec("triton") is not None:
        import triton
        import triton.language  # noqa: F401
    template.serve(int(sys.argv[1]), runner.serve)
