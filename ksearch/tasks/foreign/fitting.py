"""Shapes as formulas of the axes, from the shapes of several cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ksearch.errors import TaskError
from ksearch.expressions import evaluate
from ksearch.tasks.foreign.draft import Tensor
from ksearch.tasks.foreign.flashinfer_sizes import MOST_BYTES, size_bytes
from ksearch.tasks.foreign.side import Side

Row = tuple[str, dict[str, int], bool]


def fit_shape(
    what: str, shapes: Sequence[Sequence[int]], axes: Sequence[Mapping[str, int]], side: Side
) -> list[str | int]:
    """One formula per dimension that is right in every case.

    Raises:
        TaskError: there is none, with the dimension and what was seen.
    """
    if len({len(s) for s in shapes}) > 1:
        raise TaskError(f"{what} has {sorted({len(s) for s in shapes})} dimensions, by the case: one number is needed.")
    found: list[str | int] = []
    for place in range(len(shapes[0])):
        sizes = [shape[place] for shape in shapes]
        formula = next((f for f in _formulas(axes[0], sizes[0]) if _right(f, axes, sizes)), None)
        if formula is None:
            seen = "; ".join(f"{s} for {dict(a)}" for s, a in zip(sizes[:3], axes[:3], strict=True))
            fix = f"Write [inputs] and [outputs] into {side.path}."
            raise TaskError(f"{what}: dimension {place} is no simple formula of the arguments: {seen}. {fix}")
        found.append(formula)
    return found


def _formulas(axes: Mapping[str, int], first: int) -> Iterator[str | int]:
    """An axis before a plain number, so that one case alone is read in the way that it is meant."""
    names = [a for a, v in axes.items() if v > 1]
    yield from (a for a in names if axes[a] == first and first > 1)
    yield first
    for name in axes:
        value = axes[name]
        if first % value == 0:
            yield f"{first // value} * {name}"
        if value % max(first, 1) == 0:
            yield f"{name} // {value // max(first, 1)}"
        yield f"{name} + {first - value}" if first >= value else f"{name} - {value - first}"
    for one, other in itertools.combinations_with_replacement(axes, 2):
        yield f"{one} * {other}"
        yield f"{one} + {other}"


def _right(formula: str | int, axes: Sequence[Mapping[str, int]], sizes: Sequence[int]) -> bool:
    return all((f if isinstance(f := formula, int) else evaluate(f, a)) == s for a, s in zip(axes, sizes, strict=True))


def within(rows: Sequence[Row], tensors: Sequence[Tensor], device: str, source: Path, side: Side) -> list[Row]:
    """The cases that fit this device; one of them is timed.

    Raises:
        TaskError: none does.
    """
    fits = [row for row in rows if size_bytes(tensors, row[1], device) <= MOST_BYTES[device]]
    if not fits:
        raise TaskError(
            f"{source}: no case fits this device: at most {MOST_BYTES[device] >> 20} MiB are allowed. "
            f"Use a GPU (device = 'cuda'), or write smaller [[workloads]] into {side.path}."
        )
    return fits if any(timed for _, _, timed in fits) else [(n, a, True) for n, a, _ in fits]
