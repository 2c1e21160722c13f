"""After a verdict: one more look at a new best on a GPU, under the framework's profiler, in a fresh runner.

The verdict, the times and the record are made before this begins, and nothing here can change them: what the
program's process says of itself is advice to whoever writes the next one. Whatever goes wrong is told as the reason
why there is no profile.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ksearch.definition import Workload
from ksearch.errors import EvaluatorError
from ksearch.evaluators import bottleneck
from ksearch.evaluators.gpu import counters
from ksearch.evaluators.gpu.ceilings import MARGIN
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.processes import Broken, NoMemory
from ksearch.evaluators.stages import poison
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Evaluation, Profile, Verdict

if TYPE_CHECKING:
    from ksearch.evaluators.bench import Bench
    from ksearch.evaluators.local import LocalEvaluator, Measured
    from ksearch.evaluators.pipeline import Run
    from ksearch.evaluators.subject import Subject

SLACK_S = 60.0  # for the profiler to start


def added(
    evaluator: LocalEvaluator, run: Run, measured: Measured, lock: AbstractContextManager[object],
    restart: Callable[[], None],
) -> Measured:  # fmt: skip
    """`measured` with profiles, where they are wanted."""
    done = measured.evaluation
    if not isinstance(done, Evaluation) or not wanted(evaluator, done):
        return measured
    start = time.monotonic()
    with lock:
        profiles, sound = _profiles(evaluator, run, done)
        if not sound:
            restart()
    done = replace(done, profiles=profiles)
    measured.record["evaluation"] = asdict(done)
    measured.record.setdefault("stage_seconds", {})["profile"] = time.monotonic() - start
    return replace(measured, evaluation=done)


def wanted(evaluator: LocalEvaluator, done: Evaluation) -> bool:
    """On a GPU: asked for, or a new best, surely faster than all programs beside it (without any: the baseline)."""
    when = evaluator.options.profile
    if evaluator.spec.device != "cuda" or when == "never" or done.verdict is not Verdict.PASSED:
        return False
    rivals = [ratio for id, ratio in done.against.items() if id != evaluator.spec.baseline.id]
    if not rivals and done.speedup:
        rivals = [done.speedup]
    return when == "always" or all(ratio.faster for ratio in rivals)


def _profiles(evaluator: LocalEvaluator, run: Run, done: Evaluation) -> tuple[tuple[Profile, ...], bool]:
    """The profiles, and whether the evaluator is still sound."""
    times = {w.workload: (w.latency_ms, w.floor_ms or 0.0) for w in done.workloads if w.latency_ms}
    found: list[Profile] = []
    names = bottleneck.chosen(times)
    if not names or run.built is None:
        return (), True
    subject, sound = evaluator.subject(run.program, run.built, "prof"), True
    try:
        with timing_lease(evaluator.bench.lease):  # it would disturb what others time
            subject.start()
            for name in names:
                workload = next(w for w in evaluator.spec.workloads if w.name == name)
                found.append(_one(evaluator, subject, workload, _known(evaluator, run, workload, times[name][0])))
    except (Failed, NoMemory, EvaluatorError, OSError, ValueError) as error:
        found.append(Profile(names[len(found)], "", f"no profile: {_first_line(error)}"))
    except Broken as error:
        found.append(Profile(names[len(found)], "", f"no profile: {_first_line(error)}"))
        sound = False
    return tuple(found), _ended(evaluator, subject) and sound


def _ended(evaluator: LocalEvaluator, subject: Subject) -> bool:
    with suppress(Broken):
        subject.close()
        if subject.failed:
            evaluator.bench.healthy()
        return True
    return False


def _one(evaluator: LocalEvaluator, subject: Subject, workload: Workload, known: bottleneck.Measured) -> Profile:
    """Two sets: a call on the first warms up, and compiles."""
    bench, limits = evaluator.bench, evaluator.spec.limits
    group, key, sets = f"{workload.name}/p", f"{subject.key}/{workload.name}/p", [0, 1]
    subject.map(group, workload.axes, len(sets))
    bench.oracle.ask({"do": "fill", "keys": [key], "sets": sets, "expect": [], "poison": poison(bench, "nan")})
    order = {"do": "profile", "key": group, "sets": sets}
    answer = subject.ask(order, (), limits.build_s + limits.check_s + SLACK_S)
    subject.forget(group)
    seen = bottleneck.seen_from(answer)
    if not evaluator.options.counters:
        return bottleneck.profile_of(seen, known)
    try:
        return bottleneck.profile_of(seen, known, _counted(evaluator, subject, workload))
    except counters.NoCounters as error:
        found = bottleneck.profile_of(seen, known)
        return replace(found, summary=f"{found.summary} No hardware counters: {error}.")


def _counted(evaluator: LocalEvaluator, subject: Subject, workload: Workload) -> dict[str, float]:
    """Hardware counters; whether they can be read here is tried on the baseline, once per machine.

    Raises:
        NoCounters
    """
    bench = evaluator.bench
    counters.fenced(subject.process.rungs)  # this one's own: the next jailed process gets the same
    with _job(bench, evaluator.baseline, workload) as job:
        counters.permitted(bench, job)
    with _job(bench, subject, workload) as job:
        return counters.read(bench, job)


@contextmanager
def _job(bench: Bench, subject: Subject, workload: Workload) -> Iterator[counters.Job]:
    """A program with two buffer sets of its own."""
    program, key, sets = subject.program, f"{subject.key}/{workload.name}/n", [0, 1]
    file, _, name = program.entry_point.partition("::")
    answer, fds = bench.oracle.ask({"do": "sets", "key": key, "axes": dict(workload.axes), "count": len(sets)})
    try:
        bench.oracle.ask({"do": "fill", "keys": [key], "sets": sets, "expect": [], "poison": poison(bench, "nan")})
        yield counters.Job(
            {"language": program.language, "file": file, "name": name, "harness": False},
            {"key": key, **answer},
            subject.built.data or json.dumps(dict(program.sources)).encode("utf-8", "surrogatepass"),
        )
    finally:
        for fd in fds:
            os.close(fd)
        bench.oracle.ask({"do": "drop", "key": key})


def _known(evaluator: LocalEvaluator, run: Run, workload: Workload, latency_ms: float) -> bottleneck.Measured:
    spec, ceilings = evaluator.spec, evaluator.bench.ceilings()
    moved, operations = spec.floor(spec.names(workload.axes))
    track = run.timer.tracks.get(workload.name) if run.timer else None
    return bottleneck.Measured(
        workload.name, latency_ms,
        MARGIN * ceilings.floor_ms(moved, 0, spec.threads) if moved > 0 else 0.0,
        MARGIN * ceilings.floor_ms(0, operations, spec.threads) if operations > 0 else 0.0,
        track is not None and track.end_to_end,
    )  # fmt: skip


def _first_line(error: Exception) -> str:
    text = error.reason if isinstance(error, Failed) else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[-1][:300]
