"""A Python program that does nothing, run beside Python candidates: what an honest turn takes beside its calls.

The loop around a Python program, and the copying of what it returns, take time that grows with the machine's load.
A baseline in C++ says nothing about that; this program, written by us, does.
"""

from __future__ import annotations

from ksearch.definition import TaskSpec
from ksearch.types import Program

_SOURCE = """import numpy as np

SHAPES = {shapes!r}  # shapes of the inputs -> shapes of the outputs
DTYPES = {dtypes!r}


def run(*inputs):
    shapes = SHAPES[tuple(x.shape for x in inputs)]
    return tuple(np.empty(shape, dtype) for shape, dtype in zip(shapes, DTYPES))
"""


def null_program(spec: TaskSpec) -> Program:
    """Returns new, unwritten outputs of the right shapes for every workload. Its outputs are never judged."""
    shapes = {}
    for workload in spec.workloads:
        names = spec.names(workload.axes)
        shapes[tuple(t.dims(names) for t in spec.inputs)] = tuple(t.dims(names) for t in spec.outputs)
    text = _SOURCE.format(shapes=shapes, dtypes=tuple(t.dtype for t in spec.outputs))
    return Program({"null.py": text}, "null.py::run", "python")
