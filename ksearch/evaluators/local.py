"""The coordinator on this machine: takes a program through the stages and decides the verdict."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import forbidden, machine, record, stats
from ksearch.evaluators.bench import Bench, Subject
from ksearch.evaluators.builder import BuildFailed, Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.elf import Symbols
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import Broken
from ksearch.evaluators.stages import Checker, Errors, unseen
from ksearch.evaluators.timing import OtherFailed, Timer
from ksearch.evaluators.verdicts import Failed
from ksearch.protocol import Lost
from ksearch.types import Evaluation, Program, Ratio, Verdict, WorkloadResult

SCREEN_ROUNDS = 3
UNSEEN_SHAPES = 2
FLOOR_FRACTION = 0.9
DRIFT = 0.03
SUSPICIOUS_SPEEDUP = 10.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What `evaluate` gives: the result, and everything behind it as a JSON-able dict."""

    evaluation: Evaluation | Lost
    record: dict[str, Any]


@dataclass(slots=True)
class Run:
    """One candidate on its way through the stages."""

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
    sealed: dict[str, Any] = field(default_factory=dict)


class LocalEvaluator:
    """Measures programs for one task on this machine. Use it as a context manager; safe from several threads.

    Builds overlap; everything after them is one candidate at a time, and nothing else on this machine is timed
    meanwhile (`timing_lease`).

    Raises:
        EvaluatorError: when entered, if the task's reference or baseline does not work here.
    """

    def __init__(self, spec: TaskSpec, folder: Path, *, options: EvaluatorOptions | None = None) -> None:
        self.spec, self.folder = spec, folder
        self.options = options or EvaluatorOptions()
        self.lock = threading.RLock()
        self.counter = 0
        self.bench: Bench | None = None
        self.baseline: Subject | None = None
        self.baseline_errors = Errors()
        self.baseline_ms: dict[str, float] = {}
        self.baseline_first: dict[str, float] = {}
        self.incumbents: dict[str, Subject] = {}
        self.rng = np.random.default_rng()

    def __enter__(self) -> LocalEvaluator:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start the processes and see that the baseline passes."""
        with self.lock:
            if self.bench is not None:
                return
            try:
                self.bench = Bench(self.spec, self.folder, self.options)
                self.bench.open()
                self._open_baseline()
            except Broken as error:
                self.close()
                raise EvaluatorError(f"the evaluator could not start: {error}") from error
            except BaseException:
                self.close()
                raise

    def _open_baseline(self) -> None:
        try:
            self.baseline = self._subject(self.spec.baseline, self._build(self.spec.baseline, trusted=True), "base")
            self.baseline.start()
            checker = Checker(self._bench, self.baseline)
            checker.smoke()
            checker.check()
        except BuildFailed as error:
            raise EvaluatorError(f"the baseline of task {self.spec.name!r} does not build: {error.reason}") from error
        except Failed as error:
            where = f" on workload {error.workload!r}" if error.workload else ""
            text = f"the baseline of task {self.spec.name!r} fails{where}: {error.verdict}: {error.reason}"
            raise EvaluatorError(text) from error
        self.baseline_errors, self.baseline_ms = checker.errors, checker.call_ms
        for workload in self.spec.workloads:
            checker.forget(workload)
        self.baseline.process.stop()

    def close(self) -> None:
        """End every process and remove every file. Idempotent."""
        with self.lock:
            bench, self.bench = self.bench, None
            if bench is None:
                return
            for subject in [*self.incumbents.values(), *([self.baseline] if self.baseline else [])]:
                try:
                    subject.close()
                except Broken:
                    continue
            self.incumbents.clear()
            self.baseline = None
            bench.close()

    @property
    def _bench(self) -> Bench:
        if self.bench is None:
            raise EvaluatorError("the evaluator is closed: use it as a context manager, or call open()")
        return self.bench

    def _subject(self, program: Program, built: Built, prefix: str) -> Subject:
        self.counter += 1
        return Subject(self._bench, program, built, f"{prefix}{self.counter}")

    def _build(self, program: Program, *, trusted: bool = False) -> Built:
        limit_s = self.spec.limits.build_s
        if program.language == "python":
            return Built(b"", Symbols(), (), 0.0)
        if program.language not in ("cpp", "c"):
            text = f"language {program.language!r} cannot be measured here: cpp and python can"
            raise BuildFailed(Verdict.COMPILE_ERROR, text)
        builder = self._bench.builder
        return builder.build_trusted(program, limit_s) if trusted else builder.build(program, limit_s)

    def compiler_version(self) -> str:
        return self._bench.builder.version

    def evaluate(self, program: Program, against: Sequence[Program] = ()) -> Measured:
        """Build, check and time `program`; time the programs in `against` beside it.

        Never raises for what a program does. `Lost` when the evaluator itself failed: ask again.
        """
        run = Run(program, [p for p in against if p.id != program.id])
        try:
            self._stage_build(run)
            with self.lock:
                try:
                    evaluation = self._measure(run)
                finally:
                    self._discard(run)
            return Measured(evaluation, record.make(self, run, evaluation))
        except BuildFailed as error:
            evaluation = self._failed(run, Failed(error.verdict, error.reason, error.log))
            return Measured(evaluation, record.make(self, run, evaluation))
        except (Broken, EvaluatorError, OSError) as error:
            self._restart()
            return Measured(Lost(f"{run.stage}: {error}"), {"lost": str(error), "program": program.id})

    def _restart(self) -> None:
        """After a failure of our own nothing is trusted to be sound."""
        with self.lock:
            self.close()
            try:
                self.open()
            except (EvaluatorError, OSError):
                self.close()

    def _stage_build(self, run: Run) -> None:
        self.open()
        start = time.monotonic()
        run.built = self._build(run.program)
        if self.options.on(Defence.FORBIDDEN_SCAN):
            found = forbidden.in_library(run.built.symbols, self.spec.forbid)
            found = found or (forbidden.in_python(run.program, self.spec.forbid))
            if found:
                raise BuildFailed(Verdict.FORBIDDEN_LIBRARY, found)
        run.seconds["build"] = time.monotonic() - start

    def _measure(self, run: Run) -> Evaluation:
        assert run.built is not None
        run.subject = self._subject(run.program, run.built, "cand")
        try:
            self._stages(run)
        except Failed as failed:
            return self._failed(run, failed)
        return self._passed(run)

    def _stages(self, run: Run) -> None:
        bench, subject = self._bench, run.subject
        assert subject is not None
        assert self.baseline is not None
        self._timed(run, "smoke", subject.start)
        run.checker = checker = Checker(bench, subject)
        self._timed(run, "smoke", checker.smoke)
        self._timed(run, "check", checker.check)
        checker.precision(self.baseline_errors)
        incumbents = self._incumbents(run)
        while not self._timing(run, incumbents):
            pass
        timer = run.timer
        assert timer is not None
        self._floor(timer)
        checker.late()
        self._ended_itself(subject)
        if self.options.confirm and self.options.on(Defence.CONFIRM) and run.stage == "time" and self._best(timer):
            self._timed(run, "confirm", lambda: self._confirm(run, incumbents))

    def _timing(self, run: Run, incumbents: list[Subject]) -> bool:
        """Screen and time under the lease. False: an incumbent failed and is out of it, do it again."""
        assert run.subject is not None
        assert run.checker is not None
        assert self.baseline is not None
        checker = run.checker
        try:
            with timing_lease(self.options.lease) as waited_s:
                run.seconds["lease"] = waited_s
                timer = Timer(self._bench, run.subject, self.baseline, incumbents, self.options.time_budget_s)
                run.timer = timer
                if not self._timed(run, "screen", lambda: self._screen(timer, checker)):
                    run.flags.append("screened: stopped early, surely far slower than the incumbent")
                else:
                    self._timed(run, "time", lambda: self._time(timer))
        except OtherFailed as error:
            if error.subject not in incumbents:
                raise Broken(f"the baseline failed while it was timed: {error}") from error
            run.flags.append(f"program {error.subject.program.id[:12]} failed while timed beside it: {error}")
            incumbents.remove(error.subject)
            self.incumbents.pop(error.subject.program.id).close()
            return False
        run.subject.process.resume()
        return True

    def _timed(self, run: Run, stage: str, step: Any) -> Any:
        run.stage = stage
        start = time.monotonic()
        try:
            return step()
        finally:
            run.seconds[stage] = run.seconds.get(stage, 0.0) + time.monotonic() - start

    def _incumbents(self, run: Run) -> list[Subject]:
        """Their runners live on from candidate to candidate; those no longer asked for are ended."""
        wanted = {p.id: p for p in run.against if p.id != self.spec.baseline.id}
        for gone in set(self.incumbents) - set(wanted):
            self.incumbents.pop(gone).close()
        found = []
        for program_id, program in wanted.items():
            try:
                if program_id not in self.incumbents:
                    self.incumbents[program_id] = subject = self._subject(program, self._build(program), "inc")
                    subject.start()
                    subject.process.stop()
                found.append(self.incumbents[program_id])
            except (Failed, BuildFailed) as error:
                run.flags.append(f"program {program_id[:12]} could not be timed beside it: {error.reason}")
                if program_id in self.incumbents:
                    self.incumbents.pop(program_id).close()
        return found

    def _screen(self, timer: Timer, checker: Checker) -> bool:
        """A few rounds. False: not worth more."""
        timer.begin(checker.call_ms, self.baseline_ms)
        for track in timer.tracks.values():
            timer.rounds(track, SCREEN_ROUNDS, SCREEN_ROUNDS, self.options.time_budget_s)
        incumbents = timer.others[1:]
        if not incumbents:
            return True
        return any(self._ratios(timer, other)[0].high >= self.options.screen_ratio for other in incumbents)

    def _time(self, timer: Timer) -> None:
        timer.sample()
        timer.outside(self.options.outside_batch_ms / 5, 3)

    def _ratios(self, timer: Timer, other: Subject) -> tuple[Ratio, dict[str, Ratio]]:
        logs = {name: track.logs[other.key] for name, track in timer.tracks.items()}
        return stats.combine(logs, self.spec.mean, self.rng)

    def _best(self, timer: Timer) -> bool:
        rivals = timer.others[1:] or timer.others
        return all(self._ratios(timer, other)[0].faster for other in rivals)

    def _floor(self, timer: Timer) -> None:
        if not self.options.on(Defence.FLOOR):
            return
        for name, track in timer.tracks.items():
            floor_ms = self.floor_ms(track.workload.axes)
            took = track.median_ms(timer.candidate.key)
            if took < FLOOR_FRACTION * floor_ms:
                text = f"{took:.4g} ms is under the floor of {floor_ms:.4g} ms: the work cannot have been done"
                raise Failed(Verdict.TOO_FAST, text, workload=name)

    def floor_ms(self, axes: Mapping[str, int]) -> float:
        moved, operations = self.spec.floor(self.spec.names(axes))
        if moved <= 0 and operations <= 0:
            return 0.0
        return self._bench.ceilings().floor_ms(moved, operations, self.spec.threads)

    def _ended_itself(self, subject: Subject) -> None:
        """A last order that any sound runner answers: forged answers and early exits show here at the latest."""
        subject.ask({"do": "drop", "key": "nothing"})

    def _confirm(self, run: Run, incumbents: list[Subject]) -> None:
        """Fresh processes, unseen seeds and shapes. Its numbers replace the first ones: those won by luck too."""
        assert run.built is not None
        assert run.timer is not None
        bench, assert_baseline = self._bench, self.baseline
        assert assert_baseline is not None
        fresh = [self._subject(s.program, s.built, "conf") for s in (assert_baseline, *incumbents)]
        again = self._subject(run.program, run.built, "conf")
        first = self._ratios(run.timer, run.timer.baseline)[0]
        try:
            for subject in (again, *fresh):
                subject.start()
            checker = Checker(bench, again)
            checker.check(unseen(bench, UNSEEN_SHAPES, random.Random()))
            with timing_lease(self.options.lease):
                timer = Timer(bench, again, fresh[0], fresh[1:], self.options.confirm_budget_s)
                timer.begin(
                    {n: t.median_ms(run.timer.candidate.key) for n, t in run.timer.tracks.items()}, self.baseline_ms
                )
                timer.sample()
                timer.outside(self.options.outside_batch_ms, 8)
            second = self._ratios(timer, fresh[0])[0]
            if max(first.low, second.low) > 1.05 * min(first.high, second.high):
                run.flags.append(f"confirmation gave {second.value:.3f}, the first timing {first.value:.3f}")
            run.confirmed = True
            record.replace_timing(run, timer, incumbents)
        finally:
            for subject in (again, *fresh):
                subject.close()

    def _discard(self, run: Run) -> None:
        if self.baseline is not None:
            self.baseline.process.stop()
        if run.subject is not None:
            run.log = run.log or (run.subject.log if hasattr(run.subject, "process") else "")
            record.seal(run)
            run.subject.close()

    def _failed(self, run: Run, failed: Failed) -> Evaluation:
        workloads: tuple[WorkloadResult, ...] = ()
        if failed.workload:
            errors = run.checker.errors.get(failed.workload, {}) if run.checker else {}
            workloads = (
                WorkloadResult(
                    failed.workload, failed.verdict, failed.reason,
                    max_abs_error=errors.get("max_abs"), max_rel_error=errors.get("max_rel"),
                ),
            )  # fmt: skip
        where = f"workload {failed.workload}: " if failed.workload else ""
        return Evaluation(
            run.program.id, failed.verdict, f"{where}{failed.reason}", stage=run.stage, workloads=workloads,
            log=failed.log[-4000:], flags=tuple(run.flags), device=machine.cpu_model(),
            seconds=time.monotonic() - run.started,
        )  # fmt: skip

    def _passed(self, run: Run) -> Evaluation:
        timer = run.timer
        assert timer is not None
        total, each = self._ratios(timer, timer.baseline)
        against, by_workload = {}, {}
        for other in timer.others[1:]:
            against[other.program.id], by_workload[other.program.id] = self._ratios(timer, other)
        for program in run.against:
            if program.id == self.spec.baseline.id:
                against[program.id], by_workload[program.id] = total, each
        results = tuple(self._workload(run, timer, name, each, by_workload) for name in timer.tracks)
        self._doubts(run, timer, total)
        latency = stats.mean_of([r.latency_ms or 0.0 for r in results], self.spec.mean)
        return Evaluation(
            run.program.id, Verdict.PASSED, stage=run.stage, latency_ms=latency, speedup=total, against=against,
            workloads=results, log=run.log, flags=tuple(run.flags), confirmed=run.confirmed,
            device=machine.cpu_model(), seconds=time.monotonic() - run.started,
        )  # fmt: skip

    def _workload(
        self, run: Run, timer: Timer, name: str, each: Mapping[str, Ratio], by: Mapping[str, Mapping[str, Ratio]]
    ) -> WorkloadResult:
        track = timer.tracks[name]
        errors = run.checker.errors.get(name, {}) if run.checker else {}
        return WorkloadResult(
            name, Verdict.PASSED, latency_ms=max(track.median_ms(timer.candidate.key), 1e-6),
            baseline_ms=track.median_ms(timer.baseline.key), floor_ms=self.floor_ms(track.workload.axes),
            speedup=each[name], against={p: ratios[name] for p, ratios in by.items()},
            max_abs_error=errors.get("max_abs"), max_rel_error=errors.get("max_rel"),
        )  # fmt: skip

    def _doubts(self, run: Run, timer: Timer, total: Ratio) -> None:
        if total.value > SUSPICIOUS_SPEEDUP and not run.confirmed:
            run.flags.append(f"{total.value:.1f} times the baseline and not confirmed: look at it before using it")
        for name, track in timer.tracks.items():
            now = track.median_ms(timer.baseline.key)
            before = self.baseline_first.setdefault(name, now)
            if abs(now / before - 1) > DRIFT:
                run.flags.append(f"baseline on {name}: {now:.4g} ms, {before:.4g} ms when first timed")
