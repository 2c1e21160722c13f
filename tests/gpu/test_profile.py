"""After the verdict a new best is looked at once more; programs that resist it keep their verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ksearch.definition import TaskSpec
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.tasks import Task
from ksearch.types import Evaluation, Program, Verdict
from tests.gpu.conftest import GOOD, cuda, file, python

Judge = Callable[[Program], Evaluation]
BOUNDS = {"memory", "compute", "latency", "launch"}
LAZY = "    for _ in range(20):\n        x = x + 0\n"  # twenty kernels more
WATCHED = "import os\nimport torch.autograd\n\n\ndef watched():\n    return torch.autograd._profiler_enabled()\n"


@pytest.fixture(scope="module")
def profiling(small: TaskSpec, task: Task, quick: EvaluatorOptions) -> Iterator[Judge]:
    options = replace(quick, profile="always")
    with LocalEvaluator(small, task.folder, options=options) as one:

        def ask(program: Program) -> Evaluation:
            measured = one.evaluate(program)
            assert isinstance(measured.evaluation, Evaluation), measured.evaluation
            print(program.language, measured.record["stage_seconds"], measured.evaluation.profiles)
            return measured.evaluation

        yield ask


@pytest.mark.parametrize(
    ("program", "kernel"),
    [
        (python(GOOD), "softmax"), (file("softmax_triton.py", "triton"), "softmax"), (cuda(), "softmax"),
    ],
    ids=["python", "triton", "cuda"],
)  # fmt: skip
def test_kernels_are_named_with_their_times(profiling: Judge, program: Program, kernel: str) -> None:
    found = profiling(program)
    assert found.verdict is Verdict.PASSED, found.reason
    assert {p.workload for p in found.profiles} <= {"narrow", "mid"}
    for profile in found.profiles:
        assert profile.bound in BOUNDS, profile.summary
        assert any(kernel in k.name.lower() for k in profile.kernels), profile.kernels
        assert 0 < sum(k.ms for k in profile.kernels) < 1.0


def test_launches_are_counted(profiling: Judge) -> None:
    plain, many = profiling(python(GOOD)), profiling(python(LAZY + GOOD))
    launches = [sum(k.launches for k in f.profiles[0].kernels) for f in (plain, many)]
    assert launches[1] - launches[0] == 20, launches


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("    if watched():\n        os._exit(0)\n", WATCHED),
        ("    if watched():\n        raise RuntimeError('not while you look')\n", WATCHED),
        ("    if watched():\n        torch.full((4,), 9, device='cuda')[x.long() + (1 << 40)]\n", WATCHED),
        ("", "import torch.profiler\ntorch.profiler.profile = None\n"),
    ],
    ids=["exits", "raises", "illegal address", "patched profiler"],
)
def test_what_a_program_does_while_looked_at_changes_no_verdict(profiling: Judge, body: str, before: str) -> None:
    found = profiling(python(body + GOOD, before))
    assert found.verdict is Verdict.PASSED, found.reason
    assert [p.bound for p in found.profiles] == [""]
    assert "no profile" in found.profiles[0].summary
    again = profiling(python(GOOD))  # the next one is none the worse
    assert again.verdict is Verdict.PASSED
    assert again.profiles[0].bound in BOUNDS


def test_by_default_nothing_is_profiled(judge: Judge) -> None:
    assert judge(python(GOOD)).profiles == ()


def test_counters_are_read_or_the_profile_says_why_not(small: TaskSpec, task: Task, quick: EvaluatorOptions) -> None:
    options = replace(quick, profile="always", counters=True)
    with LocalEvaluator(small, task.folder, options=options) as one:
        for program in (python(GOOD), cuda()):
            found = one.evaluate(program).evaluation
            assert isinstance(found, Evaluation)
            assert found.verdict is Verdict.PASSED, found.reason
            for profile in found.profiles:
                print(profile.summary, dict(profile.counters))
                assert profile.bound in BOUNDS
                if profile.counters:
                    assert all(0 <= value <= 100 for value in profile.counters.values())
                else:
                    assert "No hardware counters: " in profile.summary
