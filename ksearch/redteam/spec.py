"""The red team's own small task, and what single cheats need different: a variant per such need."""

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
    """Causal row softmax of x * w, float32, one thread: a call takes about 0.1 ms."""
    baseline = Program({"baseline.cpp": (FOLDER / "baseline.cpp").read_text("utf-8")}, "baseline.cpp::run", "cpp")
    return TaskSpec(
        name="redteam",
        entry_point="run",
        axes=("R", "C"),
        inputs=(Tensor("x", "float32", ("R", "C")), Tensor("w", "float32", ("C",))),
        outputs=(Tensor("y", "float32", ("R", "C")),),
        workloads=(Workload("small", {"R": 24, "C": 40}), Workload("large", {"R": 96, "C": 128})),
        tolerance={"float32": Tolerance(2e-4, 1e-6, 1e-3)},
        baseline=baseline,
        languages=("cpp", "python"),
        precision="float32",
        domain={"R": AxisDomain(8, 128), "C": AxisDomain(8, 160)},
        limits=Limits(30.0, 5.0, 10.0, 20.0, memory_bytes=64 << 20, disk_bytes=1 << 20),
    )


def _floored(spec: TaskSpec) -> TaskSpec:
    return replace(spec, floor=Floor(bytes_moved="4 * (2 * R * C + C)"))


def _naive_tolerance(spec: TaskSpec) -> TaskSpec:
    return replace(spec, tolerance={"float32": Tolerance(1e-2, 1.0, 1e-3)}, precision="tolerance")


def _coarse(spec: TaskSpec) -> TaskSpec:
    return replace(spec, tolerance={"float32": Tolerance(5e-2, 1e-2, 5e-2)})


def _no_library(spec: TaskSpec) -> TaskSpec:
    return replace(spec, forbid=("exp", "numpy.exp"), precision="tolerance")


def _two_threads(spec: TaskSpec) -> TaskSpec:
    return replace(spec, threads=2)


def _impatient(spec: TaskSpec) -> TaskSpec:
    return replace(spec, limits=replace(spec.limits, build_s=8.0, smoke_s=1.5))


VARIANTS: dict[str, Callable[[TaskSpec], TaskSpec]] = {
    "plain": lambda spec: spec,
    "floored": _floored,
    "naive tolerance": _naive_tolerance,
    "coarse tolerance": _coarse,
    "no library": _no_library,
    "two threads": _two_threads,
    "impatient": _impatient,
}


def variant(name: str) -> TaskSpec:
    return VARIANTS[name](base())
