"""Measure programs so that others need not believe it: fresh processes and seeds, and everything on paper.

`verify` gives a certificate; `repeat` measures what a certificate names again and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ksearch.certificate import Setup, Taken, check, make, seal
from ksearch.conditions import disturbances, read_conditions, usable_cores
from ksearch.errors import BadInput, EvaluatorError, TaskError
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.protocol import Lost
from ksearch.tasks import Task
from ksearch.types import Program

ALLOWANCE = 0.03
TRIES = 2
Say = Callable[[str], None]
Body = dict[str, Any]


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Effort:
    """Seconds of timing per program, all workloads together. The second is what the certificate shows."""

    first_s: float = 1.0
    confirm_s: float = 8.0
    sandbox: str = "auto"

    @property
    def options(self) -> EvaluatorOptions:
        # Nothing is screened out: a slow program gets its certificate too.
        return EvaluatorOptions(
            time_budget_s=self.first_s, confirm_budget_s=self.confirm_s,
            confirm_all=True, screen_ratio=0.0, sandbox=self.sandbox,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verified:
    """A certificate: its content, and the bytes to write to a file."""

    body: Body
    data: bytes

    @property
    def passed(self) -> bool:
        return bool(self.body["passed"])


def verify(
    task: Task, programs: Sequence[Program], against: Sequence[Program] = (), effort: Effort | None = None,
    say: Say = _silent,
) -> Verified:  # fmt: skip
    """Measure each program beside the task's baseline and every program of `against`, interleaved.

    Args:
        say: is told what happens, one line each.

    Raises:
        EvaluatorError: this machine or the task is at fault: nothing can be said about the programs.
    """
    effort = effort or Effort()
    against = _distinct(p for p in against if p.id != task.baseline.id)
    before = read_conditions()
    for doubt in disturbances(before, usable_cores()):
        say(f"note: {doubt}")
    options = effort.options
    with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
        taken = [_taken(evaluator, program, against, say) for program in _distinct(programs)]
        compiler, flags = evaluator.compiler_version(), evaluator.compiler_flags()
    setup = Setup(task.spec, against, compiler, flags, options.time_budget_s, options.confirm_budget_s)
    body = make(setup, taken, before, read_conditions())
    data = seal(body)
    return Verified(check(data, "the new certificate"), data)


def _distinct(programs: Any) -> list[Program]:
    return list({p.id: p for p in programs}.values())


def _taken(evaluator: LocalEvaluator, program: Program, against: Sequence[Program], say: Say) -> Taken:
    say(f"measuring {program.id[:12]} ({program.entry_point})")
    for _ in range(TRIES):
        measured = evaluator.evaluate(program, against)
        if not isinstance(measured.evaluation, Lost):
            return Taken(program, measured.evaluation, measured.record)
        say(f"note: lost, not judged: {measured.evaluation.reason}")
    raise EvaluatorError(
        f"program {program.id[:12]} could not be measured in {TRIES} tries: {measured.evaluation.reason}. "
        "`ksearch doctor` looks at this machine"
    )


# --- again ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """One ratio, then and now. `agrees`: the intervals, each widened by the allowance, have a point in common."""

    program: str
    label: str  # "all workloads", or the workload's name
    other: str  # program id that it is held against
    then: Mapping[str, float]
    now: Mapping[str, float]
    agrees: bool
    then_ms: float | None = None
    now_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """A certificate held against a measurement of its programs on this machine."""

    certificate: Verified  # the new one
    rows: tuple[Compared, ...]
    same_cpu: bool
    faults: tuple[str, ...] = field(default_factory=tuple)  # verdicts that differ

    @property
    def agrees(self) -> bool:
        return not self.faults and all(row.agrees for row in self.rows)


def repeat(
    old: Body, task: Task, effort: Effort | None = None, allowance: float = ALLOWANCE, say: Say = _silent
) -> Repetition:
    """Measure a certificate's programs again, from the sources it holds, and compare.

    Args:
        old: the content of a certificate that `certificate.check` accepted.
        allowance: what machine and day may add to each end of an interval, as a fraction.

    Raises:
        TaskError: the task's folder here is not the one that the certificate is about.
        EvaluatorError: this machine is at fault.
    """
    if not 0 <= allowance < 1:
        raise BadInput(f"the allowance must be at least 0 and under 1, got {allowance}")
    check_task(old, task)
    programs = {id: Program(p["sources"], p["entry_point"], p["language"]) for id, p in old["programs"].items()}
    measured = [programs[result["program"]] for result in old["results"]]
    new = verify(task, measured, [programs[id] for id in old["against"]], effort, say)
    same_cpu = old["machine"]["cpu"] == new.body["machine"]["cpu"]
    rows: list[Compared] = []
    faults: list[str] = []
    results = {result["program"]: result for result in new.body["results"]}
    for then in old["results"]:
        now = results[then["program"]]
        if then["verdict"] != now["verdict"]:
            faults.append(f"{then['program'][:12]}: then {then['verdict']}, now {now['verdict']}: {now['reason']}")
        elif then["speedup"] is not None:
            rows += _compared(old, then, now, allowance)
    if not same_cpu:
        rows = [replace(row, then_ms=None, now_ms=None) for row in rows]
    return Repetition(new, tuple(rows), same_cpu, tuple(faults))


def check_task(old: Body, task: Task) -> None:
    """Raises:
    TaskError: another task, or another state of it.
    """
    wanted = old["task"]
    if (task.name, task.hash) != (wanted["name"], wanted["hash"]):
        raise TaskError(
            f"the certificate is about task {wanted['name']} with hash {wanted['hash'][:12]}, {task.folder} is "
            f"{task.name} with hash {task.hash[:12]}: figures of different tasks cannot be compared. Name the folder "
            "as it was then with --task (of a bundled task: install that version of K-Search, "
            f"{old['toolchain']['ksearch']})"
        )


def _compared(old: Body, then: Body, now: Body, allowance: float) -> list[Compared]:
    after = {w["name"]: w for w in now["workloads"]}
    pairs = [("all workloads", then, now, "latency_ms")]
    pairs += [(w["name"], w, after[w["name"]], "median_ms") for w in then["workloads"]]
    rows = []
    for label, before, later, time in pairs:
        others = [(old["baseline"], before["speedup"], later["speedup"])]
        others += [(id, ratio, later["against"].get(id)) for id, ratio in before["against"].items()]
        for other, was, is_now in others:
            agrees = is_now is not None and overlap(was, is_now, allowance)
            rows.append(Compared(then["program"], label, other, was, is_now or {}, agrees, before[time], later[time]))
    return rows


def overlap(one: Mapping[str, float], other: Mapping[str, float], allowance: float) -> bool:
    """Whether two intervals of ratios, each end moved out by the fraction `allowance`, have a point in common."""
    wider = 1 + allowance
    return one["low"] / wider <= other["high"] * wider and other["low"] / wider <= one["high"] * wider
