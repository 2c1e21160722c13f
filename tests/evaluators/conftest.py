"""A tiny real task (y = 2 x + row mean), real compilers, real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import AxisDomain, Floor, Limits, TaskSpec, Tensor, Tolerance, Workload
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.types import Program

TASK = Path(__file__).parent / "tasks" / "scale"
HEAD = (
    "#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <stdexcept>\n"
    "#include <thread>\n#include <vector>\n#include <signal.h>\n#include <unistd.h>\n#include <sys/socket.h>\n"
)
BODY = (
    "for (int64_t i = 0; i < m; i++) { double s = 0; for (int64_t j = 0; j < n; j++) s += x[i*n+j];"
    " float a = s / n; for (int64_t j = 0; j < n; j++) y[i*n+j] = 2 * x[i*n+j] + a; }"
)
FAST = (
    "for (int64_t i = 0; i < m; i++) { const float* r = x + i*n; float p[16] = {0}, s = 0; int64_t j = 0;"
    " for (; j + 16 <= n; j += 16) for (int k = 0; k < 16; k++) p[k] += r[j+k];"
    " for (; j < n; j++) s += r[j]; for (int k = 0; k < 16; k++) s += p[k];"
    " float a = s / n; for (j = 0; j < n; j++) y[i*n+j] = 2 * r[j] + a; }"
)


def kernel(body: str, before: str = "") -> Program:
    """`{GOOD}` and `{FAST}` in the body stand for right code."""
    body = body.replace("{GOOD}", BODY).replace("{FAST}", FAST)
    text = f'{HEAD}{before}\nextern "C" void run(float* x, float* y, int64_t m, int64_t n) {{ {body} }}\n'
    return Program({"kernel.cpp": text}, "kernel.cpp::run", "cpp")


def python(text: str) -> Program:
    return Program({"kernel.py": text}, "kernel.py::run", "python")


@pytest.fixture(scope="session")
def cpp() -> Callable[..., Program]:
    return kernel


@pytest.fixture(scope="session")
def py() -> Callable[[str], Program]:
    return python


@pytest.fixture(scope="session")
def task() -> Path:
    return TASK


@pytest.fixture(scope="session")
def spec() -> TaskSpec:
    return TaskSpec(
        name="scale",
        entry_point="run",
        languages=("cpp", "python"),
        axes=("m", "n"),
        inputs=(Tensor("x", "float32", ("m", "n")),),
        outputs=(Tensor("y", "float32", ("m", "n")),),
        workloads=(Workload("small", {"m": 7, "n": 33}), Workload("mid", {"m": 128, "n": 512})),
        tolerance={"float32": Tolerance(1e-4, 1e-5, 1e-5)},
        baseline=kernel("{GOOD}"),
        floor=Floor("8 * m * n", "2 * m * n"),
        domain={"m": AxisDomain(1, 200), "n": AxisDomain(1, 600)},
        limits=Limits(build_s=30, smoke_s=2, check_s=4, time_s=40, memory_bytes=256 << 20, disk_bytes=4 << 20),
    )


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> EvaluatorOptions:
    """Short timing: these tests are about verdicts."""
    folder = tmp_path_factory.mktemp("evaluator")
    return EvaluatorOptions(
        time_budget_s=0.1, time_cap_s=0.1, min_rounds=3, confirm=False, lease=folder / "lock", cache=folder / "cache",
        compiler_flags=("-O2", "-march=native", "-std=c++20", "-shared", "-fPIC"),
    )  # fmt: skip


@pytest.fixture(scope="session")
def evaluator(spec: TaskSpec, quick: EvaluatorOptions) -> Iterator[LocalEvaluator]:
    with LocalEvaluator(spec, TASK, options=quick) as one:
        yield one


@pytest.fixture(scope="session")
def make(spec: TaskSpec, quick: EvaluatorOptions) -> Callable[..., LocalEvaluator]:
    """An evaluator of one's own: `make(options={...}, folder=..., **changes of the spec)`."""

    def build(options: dict[str, object] | None = None, folder: Path = TASK, **changes: object) -> LocalEvaluator:
        return LocalEvaluator(
            replace(spec, **changes),  # type: ignore[arg-type]
            folder,
            options=replace(quick, **(options or {})),  # type: ignore[arg-type]
        )

    return build
