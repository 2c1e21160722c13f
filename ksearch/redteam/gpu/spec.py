"""The GPU red team's own small task, and what single cheats need different."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from ksearch.definition import AxisDomain, Floor, Limits, TaskSpec, Tensor, Tolerance, Workload
from ksearch.types import Program

FOLDER = Path(__file__).parent / "task"


@cache
def base() -> TaskSpec:
    """Row softmax of x @ w, float32: the baseline takes about 0.3 ms on an H200."""
    baseline = Program({"baseline.py": (FOLDER / "baseline.py").read_text("utf-8")}, "baseline.py::run", "python")
    return TaskSpec(
        name="redteam_gpu",
        entry_point="run",
        axes=("R", "C"),
        inputs=(Tensor("x", "float32", ("R", "C")), Tensor("w", "float32", ("C", "C"))),
        outputs=(Tensor("y", "float32", ("R", "C")),),
        workloads=(Workload("small", {"R": 96, "C": 64}, timed=False), Workload("large", {"R": 4096, "C": 512})),
        tolerance={"float32": Tolerance(2e-4, 1e-6, 1e-3)},
        baseline=baseline,
        languages=("triton", "cuda", "python"),
        precision="float32",
        domain={"R": AxisDomain(16, 4096, 16), "C": AxisDomain(16, 512, 16)},
        limits=Limits(60.0, 8.0, 15.0, 60.0),
        device="cuda",
    )


def _floored(spec: TaskSpec) -> TaskSpec:
    return replace(spec, floor=Floor(bytes_moved="4 * (2 * R * C + C * C)", operations="2 * R * C * C"))


def _naive_tolerance(spec: TaskSpec) -> TaskSpec:
    return replace(spec, tolerance={"float32": Tolerance(1e-2, 1.0, 1e-3)}, precision="tolerance")


def _coarse(spec: TaskSpec) -> TaskSpec:
    return replace(spec, tolerance={"float32": Tolerance(1e-1, 1e-2, 5e-2)})


def _no_library(spec: TaskSpec) -> TaskSpec:
    return replace(spec, forbid=("torch.softmax", "torch.nn"))


def _impatient(spec: TaskSpec) -> TaskSpec:
    return replace(spec, limits=replace(spec.limits, build_s=8.0, smoke_s=2.0))


VARIANTS: dict[str, Callable[[TaskSpec], TaskSpec]] = {
    "plain": lambda spec: spec,
    "floored": _floored,
    "naive tolerance": _naive_tolerance,
    "coarse tolerance": _coarse,
    "no library": _no_library,
    "impatient": _impatient,
}


def variant(name: str) -> TaskSpec:
    return VARIANTS[name](base())
