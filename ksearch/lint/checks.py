"""The checks in order: the reference in a process of its own, then programs and impostors by the evaluator."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ksearch.definition import Workload
from ksearch.errors import EvaluatorError, TaskError, TorchMissing
from ksearch.evaluators.devices import device_of
from ksearch.evaluators.local import LocalEvaluator, Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.lint.impostors import Impostor, impostors
from ksearch.lint.reference import Mistake, Reference
from ksearch.lint.report import LintReport, Row, Status
from ksearch.lint.torch_impostors import blind, torch_impostors
from ksearch.protocol import Lost
from ksearch.tasks import Task, load_task, why_not_here
from ksearch.types import Evaluation, Program, Verdict

PROBE_LIMIT_S = 300.0
TRIES = 3
ROOM = 1 / 3  # of the tolerance: what an honest program may use of it in the few calls that lint looks at
CURE = "Correct the program or the reference; where both are right, loosen the tolerance."
WRONG = (Verdict.WRONG_VALUES, Verdict.NON_FINITE, Verdict.STALE_OUTPUT, Verdict.LOWER_PRECISION)


class Measures(Protocol):
    """What lint needs of an evaluator."""

    def evaluate(self, program: Program) -> Measured: ...


def local_evaluator(task: Task) -> LocalEvaluator:
    """This machine's evaluator, set for verdicts rather than times: short timing, no confirmation."""
    options = EvaluatorOptions(time_budget_s=0.3, confirm=False)
    return LocalEvaluator(task.spec, task.folder, options=options)


EvaluatorFactory = Callable[[Task], AbstractContextManager[Measures]]
Seen = Callable[[Row], None]


def lint_folder(
    path_or_name: str | Path, evaluator_factory: EvaluatorFactory | None = None, on_row: Seen | None = None
) -> LintReport:
    """`lint`, where a folder that does not load is a failing row instead of an exception."""
    try:
        task = load_task(path_or_name)
    except TorchMissing as error:  # what can be seen without running it is in order
        row = Row("shapes, reference, programs and impostors", Status.SKIPPED, str(error))
        if on_row:
            on_row(row)
        return LintReport(str(path_or_name), (row,))
    except TaskError as error:
        row = Row("task folder", Status.FAIL, str(error), "Correct it, then run lint again.")
        if on_row:
            on_row(row)
        return LintReport(str(path_or_name), (row,))
    return lint(task, evaluator_factory, on_row)


def lint(
    task: Task,
    evaluator_factory: EvaluatorFactory | None = None,
    on_row: Seen | None = None,
    probe_limit_s: float = PROBE_LIMIT_S,
) -> LintReport:
    """Look for everything that would make a search on this task worthless.

    Args:
        evaluator_factory: makes the evaluator that will judge the search; None skips what needs it. Confirmation
            can be off: impostors know the sizes of the task's workloads only.
        on_row: called with each row as it is found.
        probe_limit_s: wall time for all checks of the reference together.
    """
    start, rows = time.monotonic(), []
    for row in _all_rows(task, evaluator_factory, probe_limit_s):
        rows.append(row)
        if on_row:
            on_row(row)
    return LintReport(task.name, tuple(rows), time.monotonic() - start)


def _all_rows(task: Task, factory: EvaluatorFactory | None, limit_s: float) -> Iterator[Row]:
    yield Row("task folder", Status.OK, f"{len(task.spec.workloads)} workloads, hash {task.hash[:12]}")
    if reason := why_not_here(task):
        yield Row("reference, programs and impostors", Status.SKIPPED, reason)
        return
    if task.spec.device == "cuda":
        yield from _cuda_rows(task, factory, limit_s)
        return
    sound = True
    for row in probe_rows(task.folder, limit_s):
        sound &= row.status is not Status.FAIL or not row.check.startswith("reference")
        yield row
    if factory is None:
        yield Row("programs and impostors", Status.SKIPPED, "no evaluator was given")
    elif not sound:
        yield Row("programs and impostors", Status.SKIPPED, "nothing can be judged before the reference is right")
    else:
        yield from _evaluator_rows(task, factory)


def _cuda_rows(task: Task, factory: EvaluatorFactory | None, limit_s: float) -> Iterator[Row]:
    """A task on a GPU: its programs, impostors, and the reference with one input ignored, where a GPU is there."""
    yield _floor(task)
    counts = f"{1 + len(task.strong)} programs, {len(torch_impostors(task))} impostors, {len(blind(task))} inputs"
    check = "reference, programs and impostors"
    try:
        device_of(task.spec).require()
    except EvaluatorError as error:
        yield Row(check, Status.SKIPPED, f"{error}; not run: the reference by itself, {counts}")
        return
    sound = True
    for row in probe_rows(task.folder, limit_s, "torch_probe"):
        sound &= row.status is not Status.FAIL
        yield row
    if factory is None or not sound:
        why = "no evaluator was given" if factory is None else "nothing can be judged before the reference is right"
        yield Row("programs and impostors", Status.SKIPPED, f"{why}; not run: {counts}")
    else:
        yield from _evaluator_rows(task, factory)


def _floor(task: Task) -> Row:
    from ksearch.lint.probe import possible_floor  # a program of its own, which must not be imported before it runs

    try:
        return Row("floor is possible", Status.OK, possible_floor(Reference(task)))
    except Mistake as error:
        return Row("floor is possible", Status.FAIL, str(error), error.cure)


def probe_rows(folder: Path, limit_s: float, module: str = "probe") -> Iterator[Row]:
    """Rows of a probe's process; one that hangs or dies becomes a row that names the check it was at."""
    read, write = os.pipe()
    command = [sys.executable, "-m", f"ksearch.lint.{module}", str(folder), str(write)]
    with tempfile.TemporaryFile("w+", errors="replace") as log, os.fdopen(read, "rb") as pipe:
        process = subprocess.Popen(
            command, pass_fds=(write,), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
        )  # fmt: skip
        os.close(write)
        check = "reference loads"
        try:
            for message in _messages(pipe.fileno(), time.monotonic() + limit_s):
                check = message.get("begin", check)
                if "row" in message:
                    yield Row.from_dict(message["row"])
            process.wait(timeout=5)  # the pipe is closed: it is about to end
        except (TimeoutError, subprocess.TimeoutExpired):
            cure = "Make reference.py faster or the largest workloads smaller; look for an endless loop."
            yield Row(check, Status.FAIL, f"not done after {limit_s:g} s", cure)
            return
        finally:
            with suppress(ProcessLookupError):  # whatever the reference started goes with it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode != 0:
            log.seek(0)
            last = log.read().strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            yield Row(check, Status.FAIL, f"the process ended: {last[0]}", "Correct reference.py.")


def _messages(fd: int, deadline: float) -> Iterator[dict[str, Any]]:
    """JSON lines until the end of the pipe.

    Raises:
        TimeoutError: the deadline has passed.
    """
    text = b""
    while True:
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        data = os.read(fd, 65536)
        if not data:
            return
        *lines, text = (text + data).split(b"\n")
        yield from map(json.loads, lines)


def _evaluator_rows(task: Task, factory: EvaluatorFactory) -> Iterator[Row]:
    try:
        with factory(_opened(task, task.spec.workloads)) as evaluator:
            for name, program in {"baseline": task.baseline, **_strong(task)}.items():
                measured = _calmly(evaluator, program)
                yield _passes(f"{name} passes", measured)
                yield from _room(name, measured, max(t.norm for t in task.spec.tolerance.values()))
        # A workload of one element refuses nearly everything: impostors have to fail where it counts.
        with factory(_opened(task, tuple(w for w in task.spec.workloads if w.timed))) as evaluator:
            cuda = task.spec.device == "cuda"
            for impostor in torch_impostors(task) if cuda else impostors(task):
                found = evaluator.evaluate(impostor.program)
                yield _accepted(impostor, found) if impostor.passes else _refused(impostor, found)
            for name, without in blind(task).items() if cuda else ():
                yield _looked_at(name, evaluator.evaluate(without.program))
    except EvaluatorError as error:
        yield Row("baseline passes", Status.FAIL, str(error), CURE)


def _opened(task: Task, workloads: tuple[Workload, ...]) -> Task:
    """Candidates may be limited to C++; impostors are Python, and may use what the task forbids."""
    languages = tuple({*task.spec.languages, "python"})
    return replace(task, spec=replace(task.spec, languages=languages, forbid=(), workloads=workloads))


def _calmly(evaluator: Measures, program: Program) -> Measured:
    """Asked again where clocks disagree: on a busy machine that is no fault of the task."""
    for _ in range(TRIES - 1):
        measured = evaluator.evaluate(program)
        if not isinstance(measured.evaluation, Evaluation) or measured.evaluation.verdict is not Verdict.FORGED:
            return measured
    return evaluator.evaluate(program)


def _strong(task: Task) -> dict[str, Program]:
    return {f"strong {name}": program for name, program in task.strong.items()}


def _passes(check: str, measured: Measured) -> Row:
    found = measured.evaluation
    if isinstance(found, Lost):
        return _lost(check, found)
    if found.verdict is Verdict.PASSED:
        return Row(check, Status.OK, f"{found.latency_ms:.3g} ms" if found.latency_ms else "")
    return Row(check, Status.FAIL, f"{found.verdict}: {found.reason}", CURE)


def _room(name: str, measured: Measured, norm: float) -> Iterator[Row]:
    """How near a program that passed came to being refused: the error of an honest sum is a matter of luck, too."""
    errors = {workload: found["norm"] for workload, found in measured.record.get("errors", {}).items()}
    if not errors or isinstance(measured.evaluation, Lost) or measured.evaluation.verdict is not Verdict.PASSED:
        return
    workload = max(errors, key=lambda w: errors[w])
    check, detail = f"{name} has room", f"relative error {errors[workload]:.2g} of {norm:.2g} at most, {workload}"
    if errors[workload] <= ROOM * norm:
        yield Row(check, Status.OK, detail)
        return
    cure = (
        "Programs as honest as this one will be refused by chance, since every call has new values: loosen `norm` (and "
        "`rtol`) to three times that error or more, or leave out the sizes at which it grows so large."
    )
    yield Row(check, Status.NOTE, detail, cure)


def _accepted(impostor: Impostor, measured: Measured) -> Row:
    """The twin shows that right values are not refused; how long NumPy takes for them is no matter."""
    check, found = f"{impostor.name} passes", measured.evaluation
    if isinstance(found, Evaluation) and found.stage in ("screen", "time", "confirm"):
        return Row(check, Status.OK, "right on every workload")
    return _passes(check, measured)


def _refused(impostor: Impostor, measured: Measured) -> Row:
    check, found = f"impostor refused: {impostor.name}", measured.evaluation
    if isinstance(found, Lost):
        return _lost(check, found)
    if found.verdict in WRONG:
        return Row(check, Status.OK, f"{found.verdict}: {found.reason}")
    if found.verdict is Verdict.PASSED:
        cure = "Tighten the tolerance, or choose inputs for which a wrong result differs from the right one."
        return Row(check, Status.FAIL, "it passed", cure)
    detail = f"refused for another reason, so nothing is proved: {found.verdict}: {found.reason}"
    return Row(check, Status.FAIL, detail, "Put right what the reason says, then run lint again.")


def _looked_at(name: str, measured: Measured) -> Row:
    """The reference with other values of one input: right results would mean that nobody has to read it."""
    check, found = f"depends on {name}", measured.evaluation
    if isinstance(found, Lost):
        return _lost(check, found)
    if found.verdict in WRONG:
        return Row(check, Status.OK, f"other values: {found.reason}")
    if found.stage in ("screen", "time", "confirm"):
        cure = f"Choose inputs for which {name} matters, tighten the tolerance, or drop {name}."
        return Row(check, Status.FAIL, f"a kernel that ignores the values of {name} would pass", cure)
    return Row(check, Status.SKIPPED, f"the reference does not run on other values: {found.verdict}: {found.reason}")


def _lost(check: str, found: Lost) -> Row:
    """No verdict: the check did not take place, so the task is not shown to be fit."""
    return Row(check, Status.FAIL, f"the evaluator failed: {found.reason}", "Run `ksearch doctor`, then lint again.")
