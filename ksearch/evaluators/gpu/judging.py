"""`compare` for tensors on a GPU: the same rules, in pieces, one wait per piece at most."""

from __future__ import annotations

import math

import torch

from ksearch.definition import Tolerance
from ksearch.evaluators.compare import Report

CHUNK = 1 << 23  # elements looked at together: some 64 MB per temporary


def compare(
    got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, *, elementwise: bool = True, norm: bool = True,
    non_finite: bool = True,
) -> Report:  # fmt: skip
    """Element-wise tolerance and relative Frobenius error; NaN only where the reference has NaN, infinities equal."""
    flat, wanted = got.reshape(-1), expected.reshape(-1)
    report = Report(total=flat.numel())
    starts = range(0, flat.numel(), CHUNK)
    rows = []
    for start in starts:
        bad, odd, numbers = _piece(flat[start : start + CHUNK], wanted[start : start + CHUNK], tolerance, non_finite)
        counted = bad if elementwise else odd
        rows.append(torch.stack([counted.sum().double(), odd.sum().double(), *numbers]))
    table = torch.stack(rows).tolist() if rows else []
    report.wrong = int(sum(row[0] for row in table))
    report.max_abs = max((row[2] for row in table), default=0.0)
    report.max_rel = max((row[3] for row in table), default=0.0)
    square, scale = sum(row[4] for row in table), sum(row[5] for row in table)
    report.norm = math.sqrt(square / scale) if scale > 0 else (0.0 if square == 0 else math.sqrt(square))
    faulty = [start for start, row in zip(starts, table, strict=True) if row[0]]
    strange = [start for start, row in zip(starts, table, strict=True) if row[0] and row[1]]
    for start in (strange or faulty)[:1]:
        part = slice(start, start + CHUNK)
        _note(report, flat[part], wanted[part], tolerance, non_finite, elementwise, start, got.shape)
    # An expected output of zeros alone has no relative error: there the element-wise rule decides.
    if report.verdict == "passed" and norm and scale > 0 and not report.norm <= tolerance.norm:
        report.verdict = "wrong_values"
    return report


def _piece(
    got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, non_finite: bool
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """(wrong, wrong in being not finite, [largest absolute and relative error, squared error, squared norm])."""
    exact = not got.dtype.is_floating_point and not expected.dtype.is_floating_point
    if exact and tolerance.rtol == tolerance.atol == 0:
        bad = got != expected
        count = bad.sum().double()
        size = torch.full_like(count, float(got.numel()))
        return bad, torch.zeros_like(bad), [(count > 0).double(), torch.zeros_like(count), count, size]
    value, wanted = got.double(), expected.double()
    if got.dtype.is_floating_point and got.element_size() > 1:
        # What overflows the output's own type is expected as infinity.
        rounded = expected.to(got.dtype).double()
        wanted = torch.where(torch.isfinite(rounded), wanted, rounded)
    plain, sound = torch.isfinite(wanted), torch.isfinite(value)
    same = torch.where(torch.isnan(wanted), torch.isnan(value), value == wanted)
    both = plain & sound
    difference = torch.where(both, (value - wanted).abs(), 0.0)
    size = torch.where(plain, wanted.abs(), 0.0)
    bad = torch.where(both, difference > tolerance.atol + tolerance.rtol * size, ~same)
    odd = bad & plain & ~sound
    if not non_finite:
        bad, odd = bad & sound, odd & sound
    ratio = torch.where(size > 0, difference / size, 0.0)
    return bad, odd, [difference.max(), ratio.max(), torch.dot(difference, difference), torch.dot(size, size)]


def _note(
    report: Report, got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, non_finite: bool,
    elementwise: bool, start: int, shape: torch.Size,
) -> None:  # fmt: skip
    bad, odd, _ = _piece(got, expected, tolerance, non_finite)
    strange = bool(odd.any())
    at = int((odd if strange or not elementwise else bad).to(torch.uint8).argmax())
    report.verdict = "non_finite" if strange else "wrong_values"
    report.got, report.expected = float(got[at]), float(expected[at])
    place, index = start + at, []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    report.first = tuple(reversed(index))


def clearly_equal(got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> bool:
    """Quick look: True only where `compare` would pass too."""
    return bool(surely_equal(got, expected, tolerance))


def surely_equal(got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """`clearly_equal` as a tensor of one element, so that nobody has to wait for it.

    In single precision (double for doubles), with a margin for its rounding; False where that is not enough.
    """
    flat, wanted = got.reshape(-1), expected.reshape(-1)
    if not got.dtype.is_floating_point:
        same = got.dtype == expected.dtype and tolerance.rtol == tolerance.atol == 0
        return (flat == wanted).all() if same else torch.zeros((), dtype=torch.bool, device=got.device)
    kind = torch.float64 if got.dtype == torch.float64 else torch.float32
    square = torch.zeros((), dtype=torch.float64, device=got.device)
    scale, fine = square.clone(), torch.ones((), dtype=torch.bool, device=got.device)
    rtol, atol = 0.98 * tolerance.rtol - 1e-6, 0.98 * tolerance.atol
    if kind == torch.float64:
        rtol = 0.999 * tolerance.rtol
    for start in range(0, flat.numel(), CHUNK):
        b = wanted[start : start + CHUNK].to(kind)
        difference = (
            flat[start : start + CHUNK].to(kind).sub_(b) if got.dtype != kind else flat[start : start + CHUNK] - b
        )
        square += torch.linalg.vector_norm(difference).double().square()
        size = b.abs()
        scale += torch.linalg.vector_norm(size).double().square()
        # NaN compares false, so nothing that is not finite passes here.
        fine &= (difference.abs_() <= size.mul_(rtol).add_(atol)).all()
    return fine & (scale > 0) & torch.isfinite(scale) & (square <= (0.98 * tolerance.norm) ** 2 * scale)
