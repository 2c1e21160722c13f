"""From what was gathered to an `Evaluation`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ksearch.evaluators import stats
from ksearch.evaluators.pipeline import Run, Surroundings, floor_ms, ratios
from ksearch.evaluators.timing import Timer
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Evaluation, Ratio, Verdict, WorkloadResult

DRIFT = 0.03
SUSPICIOUS_SPEEDUP = 10.0
LEAST_MS = 1e-6  # one nanosecond: the clock's own step


def failed(run: Run, failure: Failed, device: str) -> Evaluation:
    """The program did not get through on `device`, a model's name."""
    workloads: tuple[WorkloadResult, ...] = ()
    if failure.workload:
        errors = run.checker.errors.get(failure.workload, {}) if run.checker else {}
        result = WorkloadResult(
            failure.workload, failure.verdict, failure.reason,
            max_abs_error=errors.get("max_abs"), max_rel_error=errors.get("max_rel"),
        )  # fmt: skip
        workloads = (result,)
    where = f"workload {failure.workload}: " if failure.workload else ""
    return Evaluation(
        run.program.id, failure.verdict, f"{where}{failure.reason}", stage=run.stage, workloads=workloads,
        log=failure.log[:4000], flags=tuple(run.flags), device=device,
        seconds=time.monotonic() - run.started,
    )  # fmt: skip


def passed(around: Surroundings, run: Run, first_ms: dict[str, float]) -> Evaluation:
    """`first_ms`: the baseline's times when they were first taken, by workload; filled in here."""
    timer, spec = run.timer, around.spec
    assert timer is not None
    total, each = ratios(timer, timer.baseline, spec, around.rng)
    against: dict[str, Ratio] = {}
    by_workload: dict[str, Mapping[str, Ratio]] = {}
    for other in timer.others[1:]:
        against[other.program.id], by_workload[other.program.id] = ratios(timer, other, spec, around.rng)
    if any(p.id == spec.baseline.id for p in run.against):
        against[spec.baseline.id], by_workload[spec.baseline.id] = total, each
    results = tuple(_workload(around, run, name, each, by_workload) for name in timer.tracks)
    _doubts(run, timer, total, first_ms)
    latency = stats.mean_of([r.latency_ms or LEAST_MS for r in results], spec.mean)
    return Evaluation(
        run.program.id, Verdict.PASSED, stage=run.stage, latency_ms=latency, speedup=total, against=against,
        workloads=results, log=run.log, flags=tuple(run.flags), confirmed=run.confirmed,
        device=around.bench.device.name, seconds=time.monotonic() - run.started,
    )  # fmt: skip


def _workload(
    around: Surroundings, run: Run, name: str, each: Mapping[str, Ratio],
    by_program: Mapping[str, Mapping[str, Ratio]],
) -> WorkloadResult:  # fmt: skip
    timer = run.timer
    assert timer is not None
    track = timer.tracks[name]
    errors = run.checker.errors.get(name, {}) if run.checker else {}
    return WorkloadResult(
        name, Verdict.PASSED, latency_ms=max(track.median_ms(timer.candidate.key), LEAST_MS),
        baseline_ms=track.median_ms(timer.baseline.key),
        floor_ms=floor_ms(around.bench, track.workload.axes) or None,
        speedup=each[name], against={p: found[name] for p, found in by_program.items()},
        max_abs_error=errors.get("max_abs"), max_rel_error=errors.get("max_rel"),
    )  # fmt: skip


def _doubts(run: Run, timer: Timer, total: Ratio, first_ms: dict[str, float]) -> None:
    if total.value > SUSPICIOUS_SPEEDUP and not run.confirmed:
        run.flags.append(f"{total.value:.1f} times the baseline and not confirmed: look at it before using it")
    for name, track in timer.tracks.items():
        if track.end_to_end:
            run.flags.append(f"{name} is bound by launching: its times are end to end, by the outside clock")
            continue
        now = track.median_ms(timer.baseline.key)
        before = first_ms.setdefault(name, now)
        if abs(now / before - 1) > DRIFT:
            run.flags.append(f"baseline on {name}: {now:.4g} ms, {before:.4g} ms when first timed")
