"""Is this machine fit to search and to measure? Each thing is tried, not guessed. `docs/doctor.md` explains."""

from __future__ import annotations

from collections.abc import Iterator

from ksearch.doctor import evaluating, gpu, places, software
from ksearch.doctor.report import Health, Line, can_evaluate

__all__ = ["Health", "Line", "can_evaluate", "examine"]


def examine(store: str, *, quick: bool = False, gpu_wanted: bool = False) -> Iterator[Line]:
    """Look at everything, line by line as it is found.

    Args:
        store: path or URL where runs are kept.
        quick: leave out the evaluation of a small task, which takes some seconds; also that on a GPU.
        gpu_wanted: what is missing for measuring on a GPU fails.
    """
    yield from software.python()
    yield from software.compilers()
    yield from places.cores()
    yield places.caches()
    yield places.memory()
    yield places.temporary()
    yield places.cache()
    yield places.lease()
    yield from evaluating.sandbox()
    yield software.sqlite()
    yield places.store(store)
    yield from software.models()
    if not quick:
        yield evaluating.evaluation()
    yield from gpu.gpus(wanted=gpu_wanted, quick=quick)
