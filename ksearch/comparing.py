"""Two runs side by side, as numbers. Whatever was measured on other devices, or on another task, is not compared.

Speedups are over each run's own baseline, timed interleaved with the program, so that they bear a change of the
weather between two sessions; latencies do not, and are given without a ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ksearch import events as ev
from ksearch.fold import apply
from ksearch.state import State
from ksearch.types import Evaluation, Ratio, Verdict

MAX_STEPS = 12  # rows of the staircase


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What of a run is compared."""

    name: str
    task: str
    task_hash: str
    ended: str
    devices: tuple[str, ...]  # that programs were timed on
    best: Evaluation | None
    evaluations: int
    attempts: int
    solved: int
    calls: int
    tokens: int
    usd: float
    unpriced: int  # calls whose price nobody knows
    working_minutes: float
    staircase: tuple[tuple[int, float], ...]  # (evaluations, best speedup from there on)
    verdicts: Mapping[str, int] = field(default_factory=dict)

    def best_at(self, evaluations: int) -> float | None:
        """The best speedup after so many evaluations; None before any program passed."""
        reached = [value for count, value in self.staircase if count <= evaluations]
        return reached[-1] if reached else None


def facts(name: str, log: Iterable[ev.Event]) -> RunFacts:
    """One pass over a run's events."""
    state, calls = State(), 0
    staircase: list[tuple[int, float]] = []
    verdicts: dict[str, int] = {}
    for event in log:
        before, state = state, apply(state, event)
        calls += isinstance(event, ev.Received)
        if (verdict := _verdict(event)) is not None:
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
        if state.best_id != before.best_id and (best := _best(state)) and best.speedup:
            staircase.append((state.evaluated, best.speedup.value))
    timed = [done.device for done in state.evaluations.values() if done.speedup]
    return RunFacts(
        name,
        state.context.get("task", ""),
        state.context.get("task_hash", ""),
        state.ended or "",
        tuple(dict.fromkeys(timed)),
        _best(state),
        state.evaluated,
        state.attempts,
        sum(node.program_id is not None for node in state.tree.values()),
        calls,
        state.spent.tokens,
        state.spent.usd or 0.0,
        state.unpriced,
        state.worked_s / 60,
        tuple(staircase),
        verdicts,
    )


def _verdict(event: ev.Event) -> str | None:
    match event:
        case ev.Evaluated(evaluation=done):
            return done.verdict.value
        case ev.WriteFailed(verdict=verdict):
            return verdict.value
    return None


def _best(state: State) -> Evaluation | None:
    return state.evaluations.get(state.best_id or "")


def mismatch(first: RunFacts, second: RunFacts) -> str | None:
    """Why no times of the two may be compared, and what to do about it; None if they may."""
    if first.task != second.task:
        return (
            f"{first.name} searched task {first.task or '(none)'}, {second.name} task {second.task or '(none)'}: "
            "times of different tasks say nothing about each other. Compare runs of one task"
        )
    if first.task_hash and second.task_hash and first.task_hash != second.task_hash:
        return (
            f"{first.name} and {second.name} searched different versions of task {first.task} "
            f"({first.task_hash[:12]} and {second.task_hash[:12]}): its shapes, tolerances or reference differ. "
            "Run one of them again with the other's task"
        )
    devices = list(dict.fromkeys([*first.devices, *second.devices]))
    if len(devices) > 1:
        on = [f"{run.name} was timed on {' and '.join(run.devices) or 'nothing'}" for run in (first, second)]
        return (
            f"{', '.join(on)}: times of different devices are never compared. "
            "Measure both best programs on one machine with `ksearch verify`"
        )
    return None


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload of the two best programs. `gain`: the second's speedup over the first's, unpaired."""

    name: str
    first: Ratio | None
    second: Ratio | None
    gain: Ratio | None
    first_ms: float | None
    second_ms: float | None


def workloads(first: RunFacts, second: RunFacts) -> list[Workload]:
    """The two best programs, workload by workload, in the task's order."""
    found = [{w.workload: w for w in run.best.workloads} if run.best else {} for run in (first, second)]
    rows = []
    for name in dict.fromkeys([*found[0], *found[1]]):
        one, two = found[0].get(name), found[1].get(name)
        mine, other = one.speedup if one else None, two.speedup if two else None
        ms = [w.latency_ms if w and w.verdict is Verdict.PASSED else None for w in (one, two)]
        rows.append(Workload(name, mine, other, gain(mine, other), ms[0], ms[1]))
    return rows


def gain(first: Ratio | None, second: Ratio | None) -> Ratio | None:
    """Second / first with the widest interval that both allow: they were not timed together."""
    if first is None or second is None:
        return None
    return Ratio(second.value / first.value, second.low / first.high, second.high / first.low)


def steps(first: RunFacts, second: RunFacts) -> list[int]:
    """Numbers of evaluations at which the staircases are read: where one of them rises, thinned, and the ends."""
    rises = {count for run in (first, second) for count, _ in run.staircase}
    ends = {run.evaluations for run in (first, second) if run.evaluations}
    inner = sorted(rises - ends)
    room = MAX_STEPS - len(ends)
    if len(inner) > room:
        inner = [inner[i * (len(inner) - 1) // (room - 1)] for i in range(room)]
    return sorted({*inner, *ends})


def as_json(first: RunFacts, second: RunFacts, *, times: bool) -> dict[str, Any]:
    """Strict JSON values. Without `times`, nothing that was timed."""
    body: dict[str, Any] = {"runs": [_run_json(run, times=times) for run in (first, second)]}
    if times:
        body["workloads"] = [asdict(row) for row in workloads(first, second)]
        best = [run.best.speedup if run.best else None for run in (first, second)]
        ratio = gain(*best)
        body["second_over_first"] = asdict(ratio) if ratio else None
    return body


def _run_json(run: RunFacts, *, times: bool) -> dict[str, Any]:
    body = {name: getattr(run, name) for name in _PLAIN}
    body["verdicts"] = dict(run.verdicts)
    body["best"] = run.best.program_id if run.best else None
    if times:
        body["speedup"] = asdict(run.best.speedup) if run.best and run.best.speedup else None
        body["latency_ms"] = run.best.latency_ms if run.best else None
        body["staircase"] = [{"evaluations": count, "speedup": value} for count, value in run.staircase]
    return body


_PLAIN = (
    "name", "task", "task_hash", "ended", "devices", "evaluations", "attempts", "solved", "calls", "tokens", "usd",
    "unpriced", "working_minutes",
)  # fmt: skip
