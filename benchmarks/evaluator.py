"""Speed of the CPU evaluator: start, one candidate beyond compile and timing, and a program against itself.

Run it alone on a quiet machine: `python benchmarks/evaluator.py [candidates]`.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ksearch.definition import Floor, TaskSpec, Tensor, Tolerance, Workload
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.types import Evaluation, Program

REFERENCE = """import numpy as np


def inputs(axes, rng):
    return {"x": rng.standard_normal((axes["m"], axes["n"]), dtype=np.float32)}


def reference(inputs, axes):
    x = inputs["x"].astype(np.float64)
    return {"y": 2 * x + x.mean(axis=1, keepdims=True)}
"""
KERNEL = """#include <cstdint>
extern "C" void run(const float* x, float* y, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) {
        double s = 0;
        for (int64_t j = 0; j < n; j++) s += x[i * n + j];
        float mean = s / n;
        for (int64_t j = 0; j < n; j++) y[i * n + j] = 2 * x[i * n + j] + mean;
    }
}
"""
HOSTILE = '#include <unistd.h>\nextern "C" void run() { for (;;) if (fork() < 0) *(volatile int*)8 = 1; }\n'
MOST_OVERHEAD_S = 0.7


def program(text: str, number: int) -> Program:
    return Program({"kernel.cpp": f"{text}// {number}\n"}, "kernel.cpp::run", "cpp")


def spec() -> TaskSpec:
    shapes = {"small": (16, 100), "medium": (128, 512), "large": (512, 1024)}
    return TaskSpec(
        name="scale", entry_point="run", axes=("m", "n"), inputs=(Tensor("x", "float32", ("m", "n")),),
        outputs=(Tensor("y", "float32", ("m", "n")),),
        workloads=tuple(Workload(name, {"m": m, "n": n}) for name, (m, n) in shapes.items()),
        tolerance={"float32": Tolerance(1e-4, 1e-5, 1e-5)}, baseline=program(KERNEL, 0),
        floor=Floor("8 * m * n", "2 * m * n"),
    )  # fmt: skip


def measure(count: int) -> bool:
    """Print the figures; True if they keep what is promised."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "reference.py").write_text(REFERENCE)
        start = time.perf_counter()
        options = EvaluatorOptions(confirm=False, cache=Path(folder) / "cache")
        with LocalEvaluator(spec(), Path(folder), options=options) as evaluator:
            print(f"start, with compiling the baseline: {time.perf_counter() - start:.2f} s")
            return candidates(evaluator, count)


def candidates(evaluator: LocalEvaluator, count: int) -> bool:
    overheads, builds, hostile, off = [], [], [], []
    for number in range(1, count + 1):
        bad = number % 4 == 0
        start = time.perf_counter()
        measured = evaluator.evaluate(program(HOSTILE if bad else KERNEL, number))
        total = time.perf_counter() - start
        found, spent = measured.evaluation, measured.record.get("stage_seconds", {})
        assert isinstance(found, Evaluation), found
        if bad:
            hostile.append(total - spent["build"])
            continue
        assert found.speedup is not None, found.reason
        builds.append(spent["build"])
        overheads.append(total - sum(spent.get(name, 0.0) for name in ("build", "lease", "screen", "time")))
        off.append(abs(math.log(found.speedup.value)))
    middle = statistics.median(overheads)
    print(f"one candidate beyond compile and timing: {middle:.3f} s (at most {MOST_OVERHEAD_S})")
    print(f"compile: {statistics.median(builds):.3f} s")
    if hostile:
        print(f"a hostile one, beyond compile: {statistics.median(hostile):.3f} s")
    within = sum(value <= 0.01 for value in off)
    print(f"a program against itself: within 1% in {within} of {len(off)}, worst {100 * max(off):.2f}%")
    return middle <= MOST_OVERHEAD_S


if __name__ == "__main__":
    sys.exit(0 if measure(int(sys.argv[1]) if len(sys.argv) > 1 else 8) else 1)
