"""One candidate on its way: smoke, check, screen, time, confirm. Each stage is cheap beside the next."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from ksearch.definition import TaskSpec
from ksearch.evaluators import record, stats
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.bounding import bound
from ksearch.evaluators.builder import Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import Broken
from ksearch.evaluators.stages import Checker, Errors, unseen
from ksearch.evaluators.subject import Subject
from ksearch.evaluators.timing import OtherFailed, Timer
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Program, Ratio, Verdict

SCREEN_ROUNDS = 3
# So many times the time of all that a program is held against, and so much longer: a single call has to launch and to
# find cold caches, which a short one does not amortise.
HOPELESS, HOPELESS_MS = 20.0, 20.0
UNSEEN_SHAPES = 2
FLOOR_FRACTION = 0.9
T = TypeVar("T")


class Surroundings(Protocol):
    """What the pipeline needs of its evaluator."""

    spec: TaskSpec
    options: EvaluatorOptions
    baseline_errors: Errors
    baseline_ms: dict[str, float]
    seen_ms: dict[str, dict[str, float]]  # program -> workload -> a call, as last timed
    rng: np.random.Generator

    @property
    def bench(self) -> Bench: ...
    @property
    def baseline(self) -> Subject: ...
    def subject(self, program: Program, built: Built, prefix: str) -> Subject: ...
    def incumbents(self, run: Run) -> list[Subject]: ...
    def dismiss(self, subject: Subject) -> None: ...
    def control(self, program: Program) -> Subject | None: ...


@dataclass(slots=True)
class Run:
    """Everything gathered about one candidate."""

    program: Program
    against: Sequence[Program]
    stage: str = "build"
    started: float = field(default_factory=time.monotonic)
    built: Built | None = None
    subject: Subject | None = None
    checker: Checker | None = None
    timer: Timer | None = None
    flags: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    confirmed: bool = False
    log: str = ""
    sealed: dict[str, Any] = field(default_factory=dict)  # for the record, taken when the runner is dead

    def timed(self, stage: str, step: Callable[[], T]) -> T:
        """Do `step` as part of `stage`, and note how long it took."""
        self.stage = stage
        start = time.monotonic()
        try:
            return step()
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - start


def ratios(timer: Timer, other: Subject, spec: TaskSpec, rng: np.random.Generator) -> tuple[Ratio, dict[str, Ratio]]:
    """`other`'s time over the candidate's: the mean over workloads, and each."""
    logs = {name: track.logs[other.key] for name, track in timer.tracks.items()}
    return stats.combine(logs, spec.mean, rng, stats.robust)


def floor_ms(bench: Bench, axes: Mapping[str, int]) -> float:
    """The least time that the compulsory work can take on this machine; 0 where the task states no floor."""
    moved, operations = bench.spec.floor(bench.spec.names(axes))
    if moved <= 0 and operations <= 0:
        return 0.0
    return bench.ceilings().floor_ms(moved, operations, bench.spec.threads)


class Pipeline:
    def __init__(self, around: Surroundings, run: Run) -> None:
        self.around, self.run = around, run
        self.options, self.bench, self.spec = around.options, around.bench, around.spec

    def go(self) -> None:
        """All stages after the build.

        Raises:
            Failed: the program's failure; `run.stage` says where.
            Broken: ours.
        """
        run = self.run
        assert run.subject is not None
        run.timed("smoke", run.subject.start)
        run.checker = checker = Checker(self.bench, run.subject)
        run.timed("smoke", checker.smoke)
        run.timed("check", lambda: checker.check(hopeless_ms=self._hopeless_ms()))
        checker.precision(self.around.baseline_errors)
        incumbents = self.around.incumbents(run)
        while not self._timing(run.subject, checker, incumbents):
            pass
        assert run.timer is not None
        self._floor(run.timer)
        checker.late()
        # A last order that any sound runner answers: forged answers and early exits show here at the latest.
        run.subject.ask({"do": "drop", "key": "nothing"})
        if self._worth_confirming(run.timer):
            run.timed("confirm", lambda: self._confirm(incumbents))

    def _timing(self, subject: Subject, checker: Checker, incumbents: list[Subject]) -> bool:
        """Screen and time under the lease. False: an incumbent failed and is out of it, do it again."""
        run = self.run
        try:
            with timing_lease(self.bench.lease) as waited_s:
                run.seconds["lease"] = run.seconds.get("lease", 0.0) + waited_s
                budget_s = self.options.time_budget_s
                timer = run.timer = Timer(self.bench, subject, self.around.baseline, incumbents, budget_s)
                timer.control = self.around.control(run.program)
                if run.timed("screen", lambda: self._screen(timer, checker)):
                    run.timed("time", lambda: self._time(timer))
                else:
                    run.flags.append("screened: stopped early, surely far slower than the incumbent")
                timer.release()
                for timed in (subject, *incumbents):
                    tracks = timer.tracks.items()
                    self.around.seen_ms[timed.program.id] = {name: t.median_ms(timed.key) for name, t in tracks}
        except OtherFailed as error:
            if error.subject not in incumbents:
                raise Broken(f"the baseline failed while it was timed: {error}") from error
            run.flags.append(f"program {error.subject.program.id[:12]} failed while timed beside it: {error}")
            incumbents.remove(error.subject)
            self.around.dismiss(error.subject)
            return False
        subject.process.resume()
        return True

    def _hopeless_ms(self) -> dict[str, float]:
        """Of each timed workload: a call that takes longer than this is far from all that it is held against."""
        rivals = [self.around.seen_ms.get(p.id) for p in self.run.against if p.id != self.spec.baseline.id]
        if not rivals or not self.options.screen_ratio:
            return {}
        names = [w.name for w in self.spec.workloads if w.timed]
        slowest = {name: max((seen or {}).get(name, math.inf) for seen in rivals) for name in names}
        return {name: max(HOPELESS * ms, ms + HOPELESS_MS) for name, ms in slowest.items()}

    def _screen(self, timer: Timer, checker: Checker) -> bool:
        """A few rounds. False: not worth more."""
        timer.begin(checker.call_ms, self.around.baseline_ms)
        for track in timer.tracks.values():
            timer.rounds(track, SCREEN_ROUNDS, SCREEN_ROUNDS, self.options.time_budget_s)
        rivals = timer.others[1:]
        least = self.options.screen_ratio
        return not rivals or any(self._ratio(timer, other).high >= least for other in rivals)

    def _time(self, timer: Timer) -> None:
        timer.sample()
        self.run.flags += bound(timer, self.options.outside_batch_ms / 5, 3)

    def _ratio(self, timer: Timer, other: Subject) -> Ratio:
        return timer.ratio(other)

    def _worth_confirming(self, timer: Timer) -> bool:
        wanted = self.options.confirm and self.options.on(Defence.CONFIRM) and self.run.stage == "time"
        best = self.options.confirm_all or all(self._ratio(timer, o).faster for o in timer.others[1:] or timer.others)
        return wanted and best

    def _floor(self, timer: Timer) -> None:
        if not self.options.on(Defence.FLOOR):
            return
        for name, track in timer.tracks.items():
            least = floor_ms(self.bench, track.workload.axes)
            took = track.median_ms(timer.candidate.key)
            if took < FLOOR_FRACTION * least:
                self.bench.ceilings(again=True)  # a busy machine may have shown less than it can do
                least = floor_ms(self.bench, track.workload.axes)
            if took < FLOOR_FRACTION * least:
                text = f"{took:.4g} ms is under the floor of {least:.4g} ms: the work cannot have been done"
                raise Failed(Verdict.TOO_FAST, text, workload=name)

    def _confirm(self, incumbents: list[Subject]) -> None:
        """Fresh processes, unseen seeds and shapes. Its numbers replace the first ones: luck won those too."""
        run, around = self.run, self.around
        assert run.built is not None
        assert run.timer is not None
        first, earlier = self._ratio(run.timer, run.timer.baseline), run.timer
        others = [around.subject(s.program, s.built, "conf") for s in (around.baseline, *incumbents)]
        again = around.subject(run.program, run.built, "conf")
        try:
            again.start()
            self._start_others(others)
            shapes = unseen(self.bench, UNSEEN_SHAPES, random.Random())
            Checker(self.bench, again).check(shapes)
            timer = self._time_again(again, others, earlier)
            run.sealed.setdefault("timing", []).append(record.timing(earlier))
            run.timer = timer
            self._floor(timer)
            second = self._ratio(timer, others[0])
            if max(first.low, second.low) > 1.05 * min(first.high, second.high):
                run.flags.append(f"confirmation gave {second.value:.3f}, the first timing {first.value:.3f}")
            run.sealed["confirm"] = {"unseen": [dict(w.axes) for w in shapes], "seeds": again.seeds()}
            run.confirmed = True
        finally:
            for subject in (again, *others):
                subject.close()

    def _start_others(self, others: list[Subject]) -> None:
        for subject in others:
            try:
                subject.start()
            except Failed as failed:
                raise Broken(f"{subject.key} passed before and fails now: {failed.reason}") from failed

    def _time_again(self, again: Subject, others: list[Subject], earlier: Timer) -> Timer:
        expected_ms = {n: t.median_ms(earlier.candidate.key) for n, t in earlier.tracks.items()}
        with timing_lease(self.bench.lease) as waited_s:
            self.run.seconds["lease"] = self.run.seconds.get("lease", 0.0) + waited_s
            timer = Timer(self.bench, again, others[0], others[1:], self.options.confirm_budget_s)
            timer.control = self.around.control(self.run.program)
            try:
                # Longer turns: what passes beside the calls of a turn matters less.
                longer, most = (4.0, 16) if self.spec.device == "cuda" else (2.0, 8)
                timer.begin(expected_ms, self.around.baseline_ms, longer)
                timer.sample()
                self.run.flags += bound(timer, self.options.outside_batch_ms, most)
            except OtherFailed as error:
                raise Broken(f"failed in the confirmation: {error}") from error
        return timer
