"""Are the times that a runner reports borne out by the coordinator's clock?

A runner is the candidate's own process: it can patch the clock, the loop, the flush and the copying of results.
What it cannot do is run while it is stopped. So each turn is timed from outside, from before it is resumed to after
it is stopped again, and compared with the baseline's turn, which does the same beside its calls: waking up, flushing
as many bytes, answering. Two kinds of turn: calls timed alone (flushed before each), and calls queued on distinct
inputs. Noise only ever adds time outside; so does a forger's hidden work, but in every turn. Where the caches are
flushed by the oracle and the clock is the kernel's count of the process's own processor time, turns of the first
kind say everything, and others' load is not in them.

What remains possible is to hide as much as `allowance` in each turn. It is a part of every record.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

DISAGREEMENT = 0.05
SLACK_NS = 150_000  # waking, stopping and answering, per turn: how far two honest processes may differ
EXACT_SLACK_NS = 60_000  # the same, of processor time
SPREAD = 0.25  # of what the baseline takes beside its calls: flushing costs less after writes past the caches
PYTHON_CALL_NS = 2_000  # between the calls of a Python program
COPY_BYTES_PER_NS = 1.0  # of what a Python program returned, into the shared buffers
QUEUED_FRACTION = 0.75  # queued calls also write back what the call before them wrote


@dataclass(frozen=True, slots=True)
class Claims:
    """Turns of one workload. `reported`: turns of nanoseconds per call; `seen`: nanoseconds per turn.

    `baseline_reported` and `baseline_seen` are of whoever shows what is usual: for Python programs a control that
    does nothing.
    """

    calls: int
    queued_calls: int
    python: bool
    output_bytes: int
    reported: Sequence[Sequence[int]]
    seen: Sequence[int]
    quick_ns: float
    baseline_reported: Sequence[Sequence[int]]
    baseline_seen: Sequence[int]
    baseline_quick_ns: float
    call_slack_ns: int = 0  # of the device: between two queued calls
    launch_slack_ns: int = 0  # of the device: beside a call timed alone
    exact: bool = False  # `seen` is processor time, of turns in which the process waited little

    def allowance(self, calls: int, beside_ns: float) -> float:
        """What may pass beside the calls without raising a doubt, in nanoseconds per turn."""
        if self.exact:
            return beside_ns * (1 + SPREAD) + EXACT_SLACK_NS
        allowed = beside_ns * (1 + SPREAD) + SLACK_NS + calls * self.call_slack_ns
        if not self.python:
            return allowed
        # On a busy machine the loop of one Python process was seen to take twice that of another.
        return 2 * (allowed + calls * (PYTHON_CALL_NS + self.output_bytes / COPY_BYTES_PER_NS))


def doubt(claims: Claims, batches: Sequence[dict[str, Any]]) -> str:
    """What is wrong with the claims, in words; empty if nothing is.

    Args:
        batches: turns of queued calls: outside_ns and reported_ns, the same of the baseline and of a control, if any.
    """
    return (_queued(claims, batches) if batches else "") or _alone(claims)


def _queued(claims: Claims, batches: Sequence[dict[str, Any]]) -> str:
    other = "control" if "control_outside_ns" in batches[0] else "baseline"
    beside = _quiet(b[f"{other}_outside_ns"] - b[f"{other}_reported_ns"] for b in batches)
    allowed = claims.allowance(claims.queued_calls, beside)
    whole = min(b["outside_ns"] for b in batches)
    gap = min(b["outside_ns"] - b["reported_ns"] for b in batches)
    if gap > allowed + DISAGREEMENT * whole:
        claimed = min(b["reported_ns"] for b in batches)
        return (
            f"{claims.queued_calls} queued calls took {whole / 1e6:.3f} ms by the outside clock, "
            f"the process claims {claimed / 1e6:.3f} ms"
        )
    each = (whole - allowed) / claims.queued_calls
    baseline = min(b["baseline_reported_ns"] for b in batches) / claims.queued_calls
    usual = min(1.0, claims.baseline_quick_ns / max(baseline, 1.0))
    if claims.quick_ns < QUEUED_FRACTION * usual * each:
        return (
            f"calls take {each / 1e3:.1f} us each when queued, "
            f"but {claims.quick_ns / 1e3:.1f} us are claimed for calls timed alone"
        )
    return ""


def _quiet(gaps: Iterable[float]) -> float:
    """The lower quartile: of turns that little else disturbed."""
    ordered = sorted(gaps)
    return ordered[len(ordered) // 4]


def _gaps(claims: Claims) -> tuple[float, float, float]:
    """Of calls timed alone: (beside what the process claims, the same of whoever shows what is usual, claimed)."""
    middle = statistics.median if claims.exact else _quiet
    gap = middle([s - sum(ns) for s, ns in zip(claims.seen, claims.reported, strict=True)])
    beside = middle([s - sum(ns) for s, ns in zip(claims.baseline_seen, claims.baseline_reported, strict=True)])
    beside = max(beside, 0.0)
    return gap, beside, statistics.median(sum(ns) for ns in claims.reported)


def hidden_share(claims: Claims) -> float:
    """What passes beside the calls without an excuse, as a share of what is claimed for them."""
    gap, beside, claimed = _gaps(claims)
    excused = claims.allowance(claims.calls, beside) + claims.calls * claims.launch_slack_ns
    return (gap - excused) / max(claimed, 1)


def _alone(claims: Claims) -> str:
    if len(claims.seen) < 4 or hidden_share(claims) <= DISAGREEMENT:
        return ""
    gap, beside, claimed = _gaps(claims)
    return (
        f"beside the {claimed / 1e6:.3f} ms that it claims for {claims.calls} calls, the process takes "
        f"{gap / 1e6:.3f} ms by the outside clock; {beside / 1e6:.3f} ms are usual"
    )
