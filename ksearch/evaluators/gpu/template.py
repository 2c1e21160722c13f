"""The warm template of tasks with device "cuda": torch and, where installed, Triton are imported; no GPU is touched."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

import torch  # noqa: F401

from ksearch.evaluators import template
from ksearch.evaluators.gpu import runner


def warm_triton() -> None:
    """Import it, and have its own helper compiled: otherwise each program's first kernel waits for a C compiler twice.

    The helper is loaded here, so every runner inherits it; it calls nothing of CUDA before it is used.
    """
    import triton
    import triton.language  # noqa: F401

    with (
        suppress(ImportError, AttributeError, OSError, RuntimeError, TypeError, subprocess.SubprocessError),
        tempfile.TemporaryDirectory(prefix="ksearch-triton-") as folder,
    ):
        os.environ["TRITON_CACHE_DIR"] = folder
        from triton.backends.nvidia.driver import CudaUtils

        CudaUtils()
    os.environ.pop("TRITON_CACHE_DIR", None)
    tempfile.tempdir = None  # each runner has a folder of its own, named in its TMPDIR


def main() -> None:
    if importlib.util.find_spec("triton") is not None:
        warm_triton()
    template.serve(int(sys.argv[1]), runner.serve)
