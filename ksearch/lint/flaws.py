"""Flaws to plant into right outputs: what the task's tolerance has to notice, output by output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ksearch.lint.reference import Array, Arrays, Reference

# (reference, name of the output, inputs, right outputs) -> a wrong value, or None where there is none to be had
Flaw = Callable[[Reference, str, Arrays, Arrays], Array | None]


def _constant(_: Reference, name: str, __: Arrays, outputs: Arrays) -> Array:
    """The best that a constant can do: the mean."""
    value = outputs[name]
    finite = value[np.isfinite(value)]
    return np.full_like(value, finite.mean() if finite.size else 0)


def _an_input(reference: Reference, name: str, inputs: Arrays, outputs: Arrays) -> Array | None:
    wanted = outputs[name].shape
    found = [i for i in inputs.values() if i.shape == wanted]
    good = [i for i in found if reference.accepted({name: i}, outputs)]
    return next(iter(good or found), None)


def _edge(_: Reference, name: str, __: Arrays, outputs: Arrays) -> Array | None:
    value = outputs[name].copy()
    if not value.ndim or value.shape[-1] < 2:
        return None
    value[..., -1] = value[..., -2]
    return None if np.array_equal(value, outputs[name], equal_nan=True) else value


def _last_row(_: Reference, name: str, __: Arrays, outputs: Arrays) -> Array | None:
    value = outputs[name].copy()
    if not value.ndim:
        return None
    value[-1] = 0
    return None if np.array_equal(value[-1], outputs[name][-1]) else value


def _twice_tolerance(reference: Reference, name: str, _: Arrays, outputs: Arrays) -> Array:
    value = outputs[name]
    dtype = next(t.dtype for t in reference.spec.outputs if t.name == name)
    limit = reference.spec.tolerance[dtype]
    error = 2 * (limit.atol + limit.rtol * np.abs(value))
    if np.dtype(dtype).kind in "iu":
        error = np.ceil(np.maximum(error, 1))
    return np.where(np.isfinite(value), value + error, value)


def _zeros(_: Reference, name: str, __: Arrays, outputs: Arrays) -> Array:
    return np.zeros_like(outputs[name])


FLAWS: dict[str, Flaw] = {
    "zeros": _zeros,
    "a constant": _constant,
    "an input returned": _an_input,
    "the last column wrong": _edge,
    "the last row left zero": _last_row,
    "twice the tolerance": _twice_tolerance,
}
