"""Names in composed code."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping

from ksearch.definition import TaskSpec

SHOWN = 8  # characters of a program's id


def label(program_id: str) -> str:
    """Folder and name of a part."""
    return f"part_{program_id[:SHOWN]}"


def free_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or something like it that is neither taken nor a word of the language."""
    busy = set(taken)
    while name in busy or keyword.iskeyword(name):
        name += "_"
    return name


def sizes(workload_axes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in workload_axes.items())


def where(spec: TaskSpec, names: Iterable[str]) -> list[str]:
    """Workloads in words, one a line: small (rows 256, cols 197)."""
    axes = {w.name: w.axes for w in spec.workloads}
    return [f"{name} ({sizes(axes[name])})" for name in names]
