"""Profiles advise and decide nothing: whatever becomes of one, the verdict and the times stay."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ksearch.codec import decode_evaluation, encode_evaluation
from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import bottleneck, profiling
from ksearch.evaluators.bottleneck import Measured, Seen, chosen, profile_of, seen_from
from ksearch.evaluators.builder import Built
from ksearch.evaluators.bundle import evaluation_from
from ksearch.evaluators.elf import Symbols
from ksearch.evaluators.gpu.ceilings import GpuCeilings
from ksearch.evaluators.local import Measured as Outcome
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import Broken, NoMemory
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Evaluation, Kernel, Program, Ratio, Verdict, WorkloadResult

PROGRAM = Program({"kernel.py": "def run(x): ...\n"}, "kernel.py::run", "python")
FASTER, SLOWER, UNSURE = Ratio(2, 1.9, 2.1), Ratio(0.5, 0.4, 0.6), Ratio(1.01, 0.99, 1.03)
ANSWER = {"kernels": [["copy", 1, 50.0], ["product", 2, 440.0]], "launches": 3, "busy_us": 480.0, "span_us": 500.0}
DONE = Evaluation(
    PROGRAM.id, Verdict.PASSED, stage="confirm", latency_ms=0.5, speedup=FASTER, confirmed=True,
    workloads=(
        WorkloadResult("small", Verdict.PASSED, latency_ms=0.02, floor_ms=0.001),
        WorkloadResult("mid", Verdict.PASSED, latency_ms=0.1, floor_ms=0.05),
        WorkloadResult("large", Verdict.PASSED, latency_ms=0.5, floor_ms=0.3),
    ),
)  # fmt: skip


def measured(**changes: Any) -> Measured:
    return replace(Measured("large", 0.5, 0.1, 0.05, False), **changes)


def seen(busy_ms: float = 0.48, launches: int = 3) -> Seen:
    return Seen((Kernel("product", 2, 0.44), Kernel("copy", 1, 0.05)), launches, busy_ms, busy_ms)


@pytest.mark.parametrize(
    ("found", "looked", "counters", "bound", "words"),
    [
        (measured(memory_ms=0.4), seen(), {}, "memory", "compulsory bytes alone take 80%"),
        (measured(arithmetic_ms=0.4), seen(), {}, "compute", "compulsory operations alone take 80%"),
        (measured(), seen(busy_ms=0.2), {}, "launch", "60% of a call the GPU waits"),
        (measured(end_to_end=True, memory_ms=0.4), seen(), {}, "launch", "fewer and larger kernels"),
        (measured(), seen(), {}, "latency", "bytes take 20% of the time, the operations 10%"),
        (measured(memory_ms=0.0, arithmetic_ms=0.0), seen(), {}, "latency", "states no compulsory work"),
        (measured(), seen(), {"dram": 85.0}, "memory", "read or written more than once"),
        (measured(), seen(), {"dram": 70.0, "sm": 75.0}, "compute", "busiest pipe is 75%"),
        (measured(), seen(), {"dram": 20.0, "occupancy": 12.0}, "latency", "occupancy 12%"),
        (measured(latency_ms=0.0), seen(), {}, "latency", ""),
    ],
)
def test_what_binds_follows_from_times_floors_and_counters(found, looked, counters, bound, words):
    if found.latency_ms == 0:
        found = measured(latency_ms=1e-9, memory_ms=0.0, arithmetic_ms=0.0)
    profile = profile_of(looked, found, counters)
    assert (profile.bound, profile.workload) == (bound, "large")
    assert words in profile.summary
    assert "3 launches a call" in profile.summary
    assert profile.kernels == looked.kernels


def test_many_launches_are_named_as_such_and_one_kernel_has_no_share():
    assert "hands its result on through memory" in profile_of(seen(launches=9), measured()).summary
    alone = profile_of(Seen((Kernel("k", 1, 0.4),), 1, 0.4, 0.4), measured())
    assert "1 launch a call, 0.4 ms busy." in alone.summary


def test_nothing_seen_is_no_profile():
    assert profile_of(Seen((), 0, 0.0, 0.0), measured()).bound == ""


@pytest.mark.parametrize(
    "answer",
    [
        {}, {**ANSWER, "kernels": "no"}, {**ANSWER, "kernels": [["k", 1]]}, {**ANSWER, "kernels": [["k", 1, "long"]]},
        {**ANSWER, "kernels": [["k", 1, -1.0]]}, {**ANSWER, "kernels": [["k", 1, float("nan")]]},
        {**ANSWER, "kernels": [["k", True, 1.0]]}, {**ANSWER, "kernels": [["k", 1, 1.0]] * 1000},
        {**ANSWER, "busy_us": float("inf")}, {**ANSWER, "launches": None}, {**ANSWER, "kernels": [[7, 1, 1.0]]},
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(answer):
    with pytest.raises(ValueError, match="not a"):
        seen_from(answer)


def test_an_answer_is_ordered_and_cut():
    rows = [["x" * 5000, 1, 1.0], *[[f"k{i}", 1, 10.0 + i] for i in range(30)]]
    found = seen_from({**ANSWER, "kernels": rows})
    assert len(found.kernels) == bottleneck.MOST_KERNELS
    assert found.kernels[0] == Kernel("k29", 1, 0.039)
    assert len(seen_from({**ANSWER, "kernels": rows[:1]}).kernels[0].name) == 160


def test_the_longest_workload_is_looked_at_and_the_one_furthest_from_its_floor():
    times = {w.workload: (w.latency_ms or 0.0, w.floor_ms or 0.0) for w in DONE.workloads}
    assert chosen(times) == ("small", "large")
    assert chosen({"one": (1.0, 0.0)}) == ("one",)
    assert chosen({}) == ()


# --- the stage -----------------------------------------------------------------------------------------------------


class Subject:
    """Stands for a runner: `answer` is what it says, or raises."""

    def __init__(self, answer: Callable[[], dict[str, Any]]) -> None:
        self.answer, self.failed, self.closed, self.key = answer, False, 0, "prof1"
        self.program, self.built = PROGRAM, Built(b"", Symbols(), (), 0.0)
        self.process = SimpleNamespace(rungs=["pid_ns", "net_ns", "mount_ns", "no_new_privs"])

    def start(self) -> None: ...
    def map(self, *_: object) -> None: ...
    def forget(self, _: str) -> None: ...

    def ask(self, order: dict[str, Any], *_: object) -> dict[str, Any]:
        assert order["do"] == "profile"
        return self.answer()

    def close(self) -> None:
        self.closed += 1


class Around:
    """Stands for an evaluator on a GPU."""

    def __init__(self, spec: TaskSpec, folder: Path, answer: Callable[[], dict[str, Any]], profile: str = "best"):
        workloads = tuple(replace(spec.workloads[0], name=w.workload) for w in DONE.workloads)
        self.spec = replace(spec, device="cuda", workloads=workloads)
        self.options = EvaluatorOptions(profile=profile)
        self.subjects: list[Subject] = []
        self.answer, self.sick = answer, False
        ceilings = GpuCeilings((1 << 20,), (1e12,), {"float16": 1e15, "bfloat16": 1e15}, 0.0)
        self.bench = SimpleNamespace(
            lease=folder / "lock", oracle=SimpleNamespace(ask=lambda *_: ({}, [])), healthy=self.healthy,
            ceilings=lambda: ceilings, options=self.options,
        )  # fmt: skip

    def healthy(self) -> None:
        if self.sick:
            raise Broken("GPU quarantined")

    def subject(self, *_: object) -> Subject:
        self.subjects.append(Subject(self.answer))
        return self.subjects[-1]


def stage(around: Around, done: Evaluation = DONE) -> tuple[Evaluation, dict[str, Any], int]:
    """The evaluation, its record, and how often the evaluator was started again."""
    restarts: list[int] = []
    run = SimpleNamespace(program=PROGRAM, built=Built(b"", Symbols(), (), 0.0), timer=None)
    before = Outcome(done, {"evaluation": asdict(done)})
    found = profiling.added(around, run, before, threading.RLock(), lambda: restarts.append(1))  # type: ignore[arg-type]
    assert isinstance(found.evaluation, Evaluation)
    assert replace(found.evaluation, profiles=()) == done  # whatever happened
    assert found.record["evaluation"] == asdict(found.evaluation)
    assert all(s.closed == 1 for s in around.subjects)
    return found.evaluation, found.record, len(restarts)


def test_a_new_best_is_profiled_on_two_workloads(spec, tmp_path):
    around = Around(spec, tmp_path, lambda: dict(ANSWER))
    found, record, restarts = stage(around)
    assert [p.workload for p in found.profiles] == ["small", "large"]
    assert found.profiles[1].kernels[0] == Kernel("product", 2, 0.44)
    assert record["stage_seconds"]["profile"] >= 0
    assert restarts == 0
    assert len(around.subjects) == 1


def raising(error: Exception) -> Callable[[], dict[str, Any]]:
    def answer() -> dict[str, Any]:
        raise error

    return answer


@pytest.mark.parametrize(
    ("answer", "words", "restarts"),
    [
        (raising(Failed(Verdict.TIMEOUT, "not done after 9 s")), "not done after 9 s", 0),
        (raising(Failed(Verdict.FORGED, "an answer with the wrong token")), "wrong token", 0),
        (raising(NoMemory("the oracle process ran out of memory")), "ran out of memory", 0),
        (raising(EvaluatorError("held by another search")), "held by another search", 0),
        (raising(Broken("the oracle process died")), "the oracle process died", 1),
        (lambda: {"kernels": [["k", 1, float("nan")]]}, "not a profile", 0),
        (lambda: {"verdict": "passed", "latency_ms": 0}, "not a profile", 0),
    ],
)
def test_what_goes_wrong_is_the_reason_why_there_is_no_profile(spec, tmp_path, answer, words, restarts):
    found, _, began_again = stage(Around(spec, tmp_path, answer))
    assert [p.bound for p in found.profiles] == [""]
    assert found.profiles[0].summary.startswith("no profile: ")
    assert words in found.profiles[0].summary
    assert began_again == restarts


def counting(around: Around, monkeypatch: pytest.MonkeyPatch, read: Callable[..., dict[str, float]]) -> Evaluation:
    around.options = replace(around.options, counters=True)
    around.baseline = Subject(dict)  # type: ignore[attr-defined]
    monkeypatch.setattr(profiling.counters, "permitted", lambda *_: None)
    monkeypatch.setattr(profiling.counters, "read", read)
    return stage(around)[0]


def test_counters_that_were_asked_for_are_kept_or_the_reason_is(spec, tmp_path, monkeypatch):
    around = Around(spec, tmp_path, lambda: dict(ANSWER))

    def refused(*_: object) -> dict[str, float]:
        raise profiling.counters.NoCounters("ncu is not in PATH")

    without = counting(around, monkeypatch, refused)
    assert all(p.summary.endswith(" No hardware counters: ncu is not in PATH.") for p in without.profiles)
    assert all(p.bound and p.kernels and not p.counters for p in without.profiles)
    found = counting(around, monkeypatch, lambda _, job: {"dram": 90.0, "sm": float(len(job.data) > 0)})
    assert [dict(p.counters) for p in found.profiles] == [{"dram": 90.0, "sm": 1.0}] * 2


def test_a_gpu_that_does_not_compute_any_more_makes_the_evaluator_start_again(spec, tmp_path):
    around = Around(spec, tmp_path, raising(Failed(Verdict.RUNTIME_ERROR, "illegal address")))
    around.sick = True
    make = around.subject
    around.subject = lambda *a: setattr(made := make(*a), "failed", True) or made  # type: ignore[method-assign]
    assert stage(around)[2] == 1


@pytest.mark.parametrize(
    ("profile", "done", "expected"),
    [
        ("best", DONE, True),
        ("never", DONE, False),
        ("best", replace(DONE, speedup=UNSURE), False),
        ("always", replace(DONE, speedup=SLOWER), True),
        ("best", replace(DONE, against={"p": UNSURE}), False),
        ("best", replace(DONE, against={"p": FASTER, "q": SLOWER}), False),
        ("best", replace(DONE, speedup=SLOWER, against={"p": FASTER}), True),
        ("always", Evaluation(PROGRAM.id, Verdict.WRONG_VALUES), False),
    ],
)
def test_only_what_is_surely_better_than_everything_beside_it_is_a_new_best(spec, tmp_path, profile, done, expected):
    around = Around(spec, tmp_path, lambda: dict(ANSWER), profile)
    assert profiling.wanted(around, done) is expected  # type: ignore[arg-type]
    assert profiling.wanted(SimpleNamespace(spec=spec, options=around.options), done) is False  # type: ignore[arg-type]
    assert bool(stage(around, done)[0].profiles) is expected


def test_profiles_survive_log_and_bundle(spec, tmp_path):
    found, _, _ = stage(Around(spec, tmp_path, lambda: dict(ANSWER)))
    assert decode_evaluation(json.loads(json.dumps(encode_evaluation(found)))) == found
    assert evaluation_from(json.loads(json.dumps(asdict(found)))) == found
    old = asdict(DONE)
    del old["profiles"]  # results of an earlier version
    assert evaluation_from(json.loads(json.dumps(old))) == DONE
    assert "profiles" not in encode_evaluation(DONE)
