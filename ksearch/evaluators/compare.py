"""Judges one output array against what was expected. Runs in the oracle; nothing here trusts the values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksearch.definition import Tolerance

Array = np.ndarray[Any, Any]
CHUNK = 1 << 14  # elements looked at together: what is made of them stays in the second-level cache


@dataclass(slots=True)
class Report:
    """What was found in one output. `wrong` elements of `total`; `first` is the first one's index."""

    verdict: str = "passed"
    wrong: int = 0
    total: int = 0
    first: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    norm: float = 0.0

    def reason(self, name: str) -> str:
        if self.verdict == "passed":
            return ""
        if self.wrong == 0:
            return f"{name}: relative error of the whole output is {self.norm:.3g}, too large"
        index = ", ".join(map(str, self.first))
        what = "is not finite where it should be" if self.verdict == "non_finite" else "is wrong"
        return (
            f"{name}[{index}] {what}: got {self.got:.9g}, expected {self.expected:.9g}; "
            f"{self.wrong} of {self.total} elements wrong"
        )


def compare(
    got: Array, expected: Array, tolerance: Tolerance, *, elementwise: bool = True, norm: bool = True,
    non_finite: bool = True,
) -> Report:  # fmt: skip
    """Element-wise tolerance and relative Frobenius error; NaN only where the reference has NaN, infinities equal.

    Args:
        got: contiguous output of the program.
        expected: same shape, the reference's, usually float64.
    """
    report = Report(total=got.size)
    flat, wanted = got.reshape(-1), expected.reshape(-1)
    square, scale = 0.0, 0.0
    for start in range(0, got.size, CHUNK):
        part = slice(start, start + CHUNK)
        bad, odd, error, size = _chunk(flat[part], wanted[part], tolerance, non_finite, report)
        square += error
        scale += size
        if not elementwise:
            bad = odd
        if bad.any():
            _note(report, flat[part], wanted[part], bad, odd, start, got.shape)
    report.norm = math.sqrt(square / scale) if scale > 0 else (0.0 if square == 0 else math.sqrt(square))
    # An expected output of zeros alone has no relative error: there the element-wise rule decides.
    if report.verdict == "passed" and norm and scale > 0 and not report.norm <= tolerance.norm:
        report.verdict = "wrong_values"
    return report


def clearly_equal(got: Array, expected: Array, tolerance: Tolerance) -> bool:
    """Quick look in the arrays' own type: True only where `compare` would pass too. For timed calls.

    Both arrays have the same floating dtype. Anything odd (not finite, near the limit) gives False, and the
    thorough comparison decides.
    """
    if got.dtype != expected.dtype or got.dtype.kind != "f" or got.dtype.itemsize < 4:
        return False
    flat, wanted = got.reshape(-1), expected.reshape(-1)
    square = scale = 0.0
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, CHUNK):
            b = wanted[start : start + CHUNK]
            difference = flat[start : start + CHUNK] - b
            square += float(np.dot(difference, difference))
            scale += float(np.dot(b, b))
            limit = np.abs(b)
            limit *= 0.999 * tolerance.rtol
            limit += 0.999 * tolerance.atol
            # NaN compares false, so nothing that is not finite passes here.
            if not (np.abs(difference, out=difference) <= limit).all():
                return False
    return 0 < scale < np.inf and square <= (0.99 * tolerance.norm) ** 2 * scale


def _chunk(
    got: Array, expected: Array, tolerance: Tolerance, non_finite: bool, report: Report
) -> tuple[Array, Array, float, float]:
    """(wrong elements, those of them that are wrong in being not finite, squared error, squared norm)."""
    if got.dtype.kind in "iub" and expected.dtype.kind in "iub" and tolerance.rtol == tolerance.atol == 0:
        bad = got != expected
        count = float(np.count_nonzero(bad))
        report.max_abs = max(report.max_abs, 1.0 if count else 0.0)
        return bad, np.zeros(got.shape, bool), count, float(got.size)
    quick = _finite_chunk(got, expected, tolerance, report)
    if quick is not None:
        return quick
    with np.errstate(all="ignore"):
        # What overflows the output's own type is expected as infinity.
        wanted = expected.astype(got.dtype) if got.dtype.kind == "f" else expected
        wanted = np.where(np.isfinite(wanted), expected, wanted).astype(np.float64)
        value = got.astype(np.float64)
        plain = np.isfinite(wanted)
        sound = np.isfinite(value)
        same = np.where(np.isnan(wanted), np.isnan(value), value == wanted)
        difference = np.where(plain & sound, np.abs(value - wanted), 0.0)
        bad = np.where(plain & sound, difference > tolerance.atol + tolerance.rtol * np.abs(wanted), ~same)
        odd = bad & plain & ~sound
        if not non_finite:
            bad &= sound
            odd &= sound
        size = np.where(plain, np.abs(wanted), 0.0)
        report.max_abs = max(report.max_abs, float(difference.max(initial=0.0)))
        nonzero = size > 0
        ratio = np.divide(difference, size, out=np.zeros_like(size), where=nonzero)
        report.max_rel = max(report.max_rel, float(ratio.max(initial=0.0)))
        return bad, odd, float(np.dot(difference, difference)), float(np.dot(size, size))


def _finite_chunk(
    got: Array, expected: Array, tolerance: Tolerance, report: Report
) -> tuple[Array, Array, float, float] | None:
    """`_chunk` where everything is finite and nothing overflows the output's own type: a third of the work."""
    with np.errstate(all="ignore"):
        wanted = expected.astype(np.float64)
        difference = got.astype(np.float64)
        difference -= wanted
        square = float(np.dot(difference, difference))
        size = np.abs(wanted, out=wanted)
        most = float(np.finfo(got.dtype).max) if got.dtype.kind == "f" else math.inf
        if not math.isfinite(square) or not float(size.max(initial=0.0)) <= most:
            return None
        np.abs(difference, out=difference)
        bad = difference > tolerance.atol + tolerance.rtol * size
        report.max_abs = max(report.max_abs, float(difference.max(initial=0.0)))
        scale = float(np.dot(size, size))
        np.divide(difference, size, out=difference, where=size > 0)
        difference[size == 0] = 0.0
        report.max_rel = max(report.max_rel, float(difference.max(initial=0.0)))
        return bad, np.zeros(bad.shape, bool), square, scale


def _note(
    report: Report, got: Array, expected: Array, bad: Array, odd: Array, start: int, shape: tuple[int, ...]
) -> None:
    if report.wrong == 0:
        at = int(np.argmax(odd)) if odd.any() else int(np.argmax(bad))
        report.first = tuple(int(i) for i in np.unravel_index(start + at, shape))
        report.got, report.expected = float(got[at]), float(expected[at])
        report.verdict = "non_finite" if odd.any() else "wrong_values"
    report.wrong += int(np.count_nonzero(bad))
