"""How fast and how exact the evaluator is on this machine's GPU. `python benchmarks/gpu_evaluator.py [TRIES]`.

Prints: runner ready time; A/A tries (the baseline against itself); seconds per candidate and what of them is neither
building, checking nor timing; candidates per minute against a cold process per candidate; nvcc against a torch
extension. About two minutes on an H200 with 20 tries. Needs only Python, NumPy, torch and this source tree.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ksearch.evaluators.gpu import nvml  # noqa: E402
from ksearch.evaluators.local import LocalEvaluator, Measured  # noqa: E402
from ksearch.evaluators.options import EvaluatorOptions  # noqa: E402
from ksearch.tasks import load_task  # noqa: E402
from ksearch.types import Evaluation, Program  # noqa: E402

TASKS, PROGRAMS = ROOT / "tests" / "gpu" / "tasks", ROOT / "tests" / "gpu" / "programs"
# What a harness does that starts afresh for each candidate: import, CUDA, the same checks, the same timing.
COLD = """
import torch
def run(x): return torch.softmax(x, dim=1)
for rows, cols in ((37, 7), (16384, 2048), (8192, 3001)):
    for _ in range(3):
        x = torch.randn(rows, cols, device="cuda")
        assert torch.allclose(run(x).double(), torch.softmax(x.double(), 1), rtol=2e-4)
    scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(100):
        x = torch.randn(rows, cols, device="cuda")
        scratch.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(); run(x); end.record(); torch.cuda.synchronize(); start.elapsed_time(end)
"""


def evaluation(measured: Measured) -> Evaluation:
    assert isinstance(measured.evaluation, Evaluation), measured.evaluation
    return measured.evaluation


def twin(program: Program, number: int) -> Program:
    """The same program under another id."""
    sources = {name: f"{text}\n# {number}\n" for name, text in program.sources.items()}
    return replace(program, sources=sources)


def same_against_itself(name: str, tries: int, options: EvaluatorOptions) -> None:
    task = load_task(TASKS / name)
    found, took, overheads, ready = [], [], [], []
    with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
        for number in range(tries):
            start = time.monotonic()
            measured = evaluator.evaluate(twin(task.spec.baseline, number))
            took.append(time.monotonic() - start)
            seconds = measured.record["stage_seconds"]
            ready.append(measured.record["ready_s"])
            stages = ("build", "smoke", "check", "screen", "time", "confirm", "lease")
            overheads.append(took[-1] - sum(seconds.get(stage, 0.0) for stage in stages))
            found.append(evaluation(measured))
    ratios = [e.speedup for e in found if e.speedup]
    holds = sum(r.low <= 1 <= r.high for r in ratios)
    worst = max(abs(r.value - 1) for r in ratios)
    width = statistics.median((r.high - r.low) / 2 for r in ratios)
    latencies = [round(w.latency_ms or 0, 4) for w in found[-1].workloads]
    print(f"A/A {name}, {latencies} ms: {len(ratios)} of {tries} passed, farthest from 1 by {worst:.4f},")
    print(f"  1 in the interval {holds} times, median half-width {width:.4f}; {[round(r.value, 4) for r in ratios]}")
    print(f"  runner ready {_both(ready)}; candidate {_both(took)},")
    print(f"  of it beyond build, check and timing {_both(overheads)}")
    print(f"  stages of the last: { ({k: round(v, 3) for k, v in seconds.items()}) }", flush=True)


def _both(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} s (most {max(values):.3f})"


def per_minute(count: int, options: EvaluatorOptions) -> None:
    task = load_task(TASKS / "softmax")
    quick = replace(options, time_budget_s=0.5, time_cap_s=0.5, confirm=False, min_rounds=5)
    with LocalEvaluator(task.spec, task.folder, options=quick) as evaluator:
        start = time.monotonic()
        for number in range(count):
            evaluation(evaluator.evaluate(twin(task.spec.baseline, number)))
        warm = (time.monotonic() - start) / count
    start = time.monotonic()
    for _ in range(3):
        subprocess.run([sys.executable, "-c", COLD], check=True)
    cold = (time.monotonic() - start) / 3
    print(f"candidates per minute: {60 / warm:.0f} ({warm:.2f} s each); with a cold process for each {60 / cold:.0f}")
    print(f"  ({cold:.2f} s each): {cold / warm:.1f} times", flush=True)


def programs(options: EvaluatorOptions) -> None:
    task = load_task(TASKS / "softmax")
    with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
        for name, language in (("softmax_triton.py", "triton"), ("softmax.cu", "cuda")):
            program = Program({name: (PROGRAMS / name).read_text()}, f"{name}::run", language)
            measured = evaluator.evaluate(program)
            e, seconds = evaluation(measured), measured.record["stage_seconds"]
            words = f"{e.speedup.value:.3f} ({e.speedup.low:.3f}..{e.speedup.high:.3f})" if e.speedup else e.reason
            print(
                f"{name}: {e.verdict} {words}, {e.seconds:.2f} s",
                {k: round(v, 2) for k, v in seconds.items()},
                flush=True,
            )


def main(arguments: list[str]) -> None:
    gpus: list[dict[str, Any]] = nvml.gpus()
    if not gpus:
        print("no NVIDIA GPU here: nothing measured")
        return
    print(f"{gpus[0]['name']}, driver {gpus[0]['driver']}, {gpus[0]['sm_mhz']} MHz, {gpus[0]['temperature_c']} degrees")
    tries = int(arguments[0]) if arguments else 20
    with tempfile.TemporaryDirectory() as folder:
        options = EvaluatorOptions(cache=Path(folder), confirm=False)
        programs(replace(options, confirm=True))
        same_against_itself("matmul", tries, options)
        same_against_itself("softmax", tries, options)
        per_minute(10, options)


if __name__ == "__main__":
    main(sys.argv[1:])
