"""Real tasks on a real GPU. Run by hand: `make test-gpu`, or `python -m pytest -m gpu tests/gpu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import AxisDomain, Limits, TaskSpec, Workload
from ksearch.evaluators.gpu import nvml
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.tasks import Task, load_task
from ksearch.types import Evaluation, Program

HERE = Path(__file__).parent
GOOD = "    return torch.softmax(x, dim=1)\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="no NVIDIA GPU here") if not nvml.gpus() else None
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if skip is not None:
                item.add_marker(skip)


def python(body: str, before: str = "", language: str = "python") -> Program:
    text = f"import torch\n{before}\n\ndef run(x):\n{body}"
    return Program({"kernel.py": text}, "kernel.py::run", language)


def cuda(before: str = "", body: str = "softmax<<<rows, 256, 0, stream>>>(x, y, cols);", kernel: str = "") -> Program:
    """The honest softmax with something before it, another body of `run`, or more kernels."""
    text = (HERE / "programs" / "softmax.cu").read_text()
    head, _, _ = text.partition('extern "C"')
    head = f"#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n{before}\n{head}\n{kernel}\n"
    entry = 'extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream)'
    return Program({"kernel.cu": f"{head}{entry} {{ {body} }}\n"}, "kernel.cu::run", "cuda")


def file(name: str, language: str) -> Program:
    return Program({name: (HERE / "programs" / name).read_text()}, f"{name}::run", language)


@pytest.fixture(scope="session")
def task() -> Task:
    return load_task(HERE / "tasks" / "softmax")


@pytest.fixture(scope="session")
def small(task: Task) -> TaskSpec:
    """The same task with small sizes and short limits: for verdicts, not for times."""
    return replace(
        task.spec,
        workloads=(Workload("narrow", {"rows": 37, "cols": 7}), Workload("mid", {"rows": 1024, "cols": 1000})),
        domain={"rows": AxisDomain(1, 1024), "cols": AxisDomain(1, 1000)},
        limits=Limits(build_s=12, smoke_s=3, check_s=5, time_s=60),
    )


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> EvaluatorOptions:
    folder = tmp_path_factory.mktemp("evaluator")
    return EvaluatorOptions(
        time_budget_s=0.2, time_cap_s=0.2, min_rounds=3, confirm=False, cache=folder / "cache",
    )  # fmt: skip


@pytest.fixture(scope="session")
def evaluator(small: TaskSpec, task: Task, quick: EvaluatorOptions) -> Iterator[LocalEvaluator]:
    with LocalEvaluator(small, task.folder, options=quick) as one:
        yield one


@pytest.fixture(scope="session")
def judge(evaluator: LocalEvaluator) -> Callable[[Program], Evaluation]:
    def ask(program: Program) -> Evaluation:
        found = evaluator.evaluate(program).evaluation
        assert isinstance(found, Evaluation), found
        return found

    return ask
