"""The bundled task `trimul_gpu`: right programs pass, and programs that leave a part of the definition out do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.tasks import Task, load_task
from ksearch.types import Evaluation, Program, Verdict

LARGEST_BYTES = 140_000_000
# A line of the baseline, and what a wrong program has in its place.
FLAWS = {
    "no mask on the left": ("left = (z @ w_left) * on", "left = (z @ w_left)"),
    "no output gate": ("(out * gate) @ w_out", "out @ w_out"),
    "incoming edges": ("bikh,bjkh->bijh", "bkih,bkjh->bijh"),
    "another epsilon": ("EPSILON = 1e-5", "EPSILON = 1e-6"),
    "no bias": ("norm_weight, norm_bias, EPSILON", "norm_weight, None, EPSILON"),
    "sides exchanged": ("left, right)", "right, left)"),
    "the last channel left out": ("@ w_out\n", "@ functional.pad(w_out[:, :-1], (0, 1))\n"),
}


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("trimul_gpu")


@pytest.fixture(scope="module")
def trimul(task: Task, quick: EvaluatorOptions) -> Iterator[LocalEvaluator]:
    """Small sizes only: for verdicts, not for times."""
    spec = task.spec
    small = [w for w in spec.workloads if spec.floor(spec.names(w.axes))[0] < LARGEST_BYTES]
    with LocalEvaluator(replace(spec, workloads=tuple(small)), task.folder, options=quick) as one:
        yield one


def judged(evaluator: LocalEvaluator, program: Program) -> Evaluation:
    found = evaluator.evaluate(program).evaluation
    assert isinstance(found, Evaluation), found
    return found


def test_the_strong_program_passes_and_is_faster(trimul, task):
    found = judged(trimul, task.strong["triton"])
    assert found.verdict is Verdict.PASSED, found.reason
    assert found.speedup is not None
    assert found.speedup.low > 1


def flawed(task: Task, name: str) -> Program:
    old, new = FLAWS[name]
    source = task.baseline.sources["baseline.py"]
    assert old in source
    return Program({"kernel.py": source.replace(old, new)}, "kernel.py::run", "python")


@pytest.mark.parametrize("name", FLAWS)
def test_a_program_that_leaves_something_out_is_wrong(trimul, task, name):
    found = judged(trimul, flawed(task, name))
    assert found.verdict is Verdict.WRONG_VALUES, (found.verdict, found.reason)
