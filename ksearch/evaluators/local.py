"""The coordinator on this machine: owns the processes, takes programs through the stages, decides verdicts."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import forbidden, profiling, record, results
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.builder import BuildFailed, Built
from ksearch.evaluators.builds import Builds
from ksearch.evaluators.control import null_program
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.elf import Symbols
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.pipeline import Pipeline, Run
from ksearch.evaluators.processes import Broken, Ended, NoMemory, TooBusy
from ksearch.evaluators.stages import Checker, Errors
from ksearch.evaluators.subject import Subject
from ksearch.evaluators.verdicts import Failed
from ksearch.protocol import Lost
from ksearch.types import Evaluation, Program, Verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """What `evaluate` gives: the result, and everything behind it as a JSON-able dict."""

    evaluation: Evaluation | Lost
    record: dict[str, Any]


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
        self.rng = np.random.default_rng()
        self.baseline_errors = Errors()
        self.baseline_ms, self._first_ms = dict[str, float](), dict[str, float]()
        self.seen_ms: dict[str, dict[str, float]] = {}
        self.builds: Builds | None = None  # shared by the evaluators of several devices
        self._lock = threading.RLock()
        self._counter = 0
        self._bench: Bench | None = None
        self._baseline: Subject | None = None
        self._incumbents: dict[str, Subject] = {}
        self._control: Subject | None = None

    def __enter__(self) -> LocalEvaluator:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bench(self) -> Bench:
        if self._bench is None:
            raise EvaluatorError("the evaluator is closed: use it as a context manager, or call open()")
        return self._bench

    @property
    def baseline(self) -> Subject:
        if self._baseline is None:
            raise EvaluatorError("the evaluator is closed: use it as a context manager, or call open()")
        return self._baseline

    def open(self) -> None:
        """Start the processes and see that the baseline passes. Idempotent."""
        with self._lock:
            if self._bench is not None:
                return
            try:
                self._bench = Bench(self.spec, self.folder, self.options)
                self._bench.open()
                self._open_baseline()
            except Broken as error:
                self.close()
                raise EvaluatorError(f"the evaluator could not start: {error}") from error
            except BaseException:
                self.close()
                raise

    def _open_baseline(self) -> None:
        program, name = self.spec.baseline, self.spec.name
        try:
            subject = self._baseline = self.subject(program, self.build(program, trusted=True), "base")
            subject.start()
            checker = Checker(self.bench, subject)
            checker.smoke()
            checker.check()
        except BuildFailed as error:
            raise EvaluatorError(f"the baseline of task {name!r} does not build: {error.reason}") from error
        except Failed as error:
            where = f" on workload {error.workload!r}" if error.workload else ""
            said = f"{where}: {error.verdict}: {error.reason}"
            raise EvaluatorError(f"the baseline of task {name!r} fails{said}") from error
        self.baseline_errors, self.baseline_ms = checker.errors, checker.call_ms
        for workload in self.spec.workloads:
            checker.forget(workload)
        subject.process.stop()

    def close(self) -> None:
        """End every process and remove every file. Idempotent."""
        with self._lock:
            bench = self._bench
            if bench is None:
                return
            for subject in filter(None, (*self._incumbents.values(), self._control, self._baseline)):
                with suppress(Broken):  # its oracle or keeper is already gone, and its descriptors are closed
                    subject.close()
            self._incumbents.clear()
            self._control = self._baseline = self._bench = None
            bench.close()

    def subject(self, program: Program, built: Built, prefix: str) -> Subject:
        """A handle on `program` under a new key; not started."""
        self._counter += 1
        return Subject(self.bench, program, built, f"{prefix}{self._counter}")

    def build(self, program: Program, *, trusted: bool = False) -> Built:
        limit_s = self.spec.limits.build_s
        languages = self.bench.device.languages
        if program.language in languages and not languages[program.language]:
            return Built(b"", Symbols(), (), 0.0)
        if program.language not in languages:
            text = f"language {program.language!r} does not run on {self.spec.device}: {', '.join(languages)} do"
            raise BuildFailed(Verdict.COMPILE_ERROR, text)
        builder = self.bench.builder
        if trusted or self.builds is None:
            return builder.build_trusted(program, limit_s) if trusted else builder.build(program, limit_s)
        return self.builds.built(program.id, lambda: builder.build(program, limit_s))

    def evaluate(self, program: Program, against: Sequence[Program] = ()) -> Measured:
        """Build, check and time `program`; time the programs in `against` beside it.

        Never raises for what a program does. `Lost` when the evaluator itself failed: ask again.
        """
        run = Run(program, [p for p in against if p.id != program.id])
        try:
            measured = self._measured(run)
        except (Broken, EvaluatorError, OSError, MemoryError) as error:
            if not isinstance(error, TooBusy):
                self._restart()
            return Measured(Lost(f"{run.stage}: {error}"), {"lost": str(error), "program": program.id})
        return profiling.added(self, run, measured, self._lock, self._restart)

    def _measured(self, run: Run) -> Measured:
        try:
            self._stage_build(run)
            with self._lock:  # also for the record: it asks the bench, which another thread may be about to close
                self.open()
                evaluation = self._measure(run)
                return Measured(evaluation, record.make(self, run, evaluation))
        except BuildFailed as error:
            evaluation = results.failed(run, Failed(error.verdict, error.reason, error.log), self.bench.device.name)
            return Measured(evaluation, record.make(self, run, evaluation))

    def compiler_version(self) -> str:
        try:
            return self.bench.builder.version(self._compiled())
        except EvaluatorError:
            if self.spec.device == "cpu":
                raise
            return ""  # a GPU has languages that need no compiler of ours

    def compiler_flags(self) -> list[str]:
        return self.bench.builder.flags(self._compiled())

    def _compiled(self) -> str:
        return "cuda" if self.spec.device == "cuda" else "cpp"

    def _restart(self) -> None:
        """After a failure of our own nothing is trusted to be sound."""
        with self._lock:
            self.close()
            try:
                self.open()
            except (EvaluatorError, OSError):
                self.close()  # the next evaluate() tries again, and says why it cannot

    def _stage_build(self, run: Run) -> None:
        self.open()
        start = time.monotonic()
        built = run.built = self.build(run.program)
        if self.options.on(Defence.FORBIDDEN_SCAN):
            found = forbidden.in_library(built.symbols, self.spec.forbid)
            if run.program.language in ("python", "triton"):
                found = forbidden.in_python(run.program, self.spec.forbid)
            if found:
                raise BuildFailed(Verdict.FORBIDDEN_LIBRARY, found)
        run.seconds["build"] = time.monotonic() - start

    def _measure(self, run: Run) -> Evaluation:
        assert run.built is not None
        run.subject = self.subject(run.program, run.built, "cand")
        try:
            Pipeline(self, run).go()
            evaluation = results.passed(self, run, self._first_ms)
        except Failed as failure:
            if failure.verdict is Verdict.OUT_OF_MEMORY and self.spec.device == "cuda":
                failure = self._whose_memory(run, failure)
            evaluation = results.failed(run, failure, self.bench.device.name)
        except NoMemory as error:
            evaluation = results.failed(run, self._whose_memory(run, error), self.bench.device.name)
        finally:
            self._discard(run)
        return evaluation if evaluation.log else replace(evaluation, log=run.log)

    def _whose_memory(self, run: Run, error: NoMemory | Failed) -> Failed:
        """The GPU's memory was used up, for the oracle or for the program: is it the program's doing?

        Raises:
            NoMemory: the task is too large for this GPU, as it is filled now.
        """
        cause = error if isinstance(error, NoMemory) else NoMemory(f"too little GPU memory is left: {error}")
        if self.spec.device != "cuda" or run.subject is None:
            raise cause
        before, _ = self.bench.oracle.ask({"do": "about"})
        run.subject.process.kill()
        after, _ = self.bench.oracle.ask({"do": "about"})
        left, held = int(before["free_bytes"]), int(after["free_bytes"]) - int(before["free_bytes"])
        allowed = self.spec.limits.memory_bytes
        if isinstance(error, Failed) and max(left, held) >= allowed:
            return error
        if held < allowed:
            raise cause
        text = f"it held {held / 2**30:.1f} GiB of the GPU's memory, which left too little to check its outputs"
        return Failed(Verdict.OUT_OF_MEMORY, text, run.subject.log)

    def gpu(self) -> dict[str, Any]:
        """Model, driver, clocks and temperature of the GPU; empty for a CPU."""
        return {**self.bench.device.about, **self.bench.device.state()}

    def _discard(self, run: Run) -> None:
        self.baseline.process.stop()
        assert run.subject is not None
        try:
            record.seal(run)
        finally:
            run.subject.close()
        if run.subject.failed:
            self.bench.healthy()

    def incumbents(self, run: Run) -> list[Subject]:
        """Their runners live on from candidate to candidate; those no longer asked for are ended."""
        wanted = {p.id: p for p in run.against if p.id != self.spec.baseline.id}
        for gone in set(self._incumbents) - set(wanted):
            self.dismiss(self._incumbents[gone])
        found = []
        for program_id, program in wanted.items():
            try:
                if program_id not in self._incumbents:
                    self._incumbents[program_id] = subject = self.subject(program, self.build(program), "inc")
                    subject.start()
                    subject.process.stop()
                found.append(self._incumbents[program_id])
            except (Failed, BuildFailed) as error:
                run.flags.append(f"program {program_id[:12]} could not be timed beside it: {error.reason}")
                if program_id in self._incumbents:
                    self.dismiss(self._incumbents[program_id])
        return found

    def control(self, program: Program) -> Subject | None:
        """Beside a Python program on the CPU: one that does nothing, to show what an honest turn takes."""
        if program.language != "python" or self.spec.device == "cuda":
            return None
        if self._control is None:
            null = null_program(self.spec)
            self._control = self.subject(null, self.build(null), "null")
            try:
                self._control.start()
                self._control.process.stop()
            except (Failed, Ended) as error:
                raise Broken(f"the control program does not run: {error}") from error
        return self._control

    def dismiss(self, subject: Subject) -> None:
        """End an incumbent's runner."""
        self._incumbents.pop(subject.program.id, None)
        subject.close()
