"""The bundled task `trimul_gpu` on this machine's GPU. `python benchmarks/trimul_gpu.py [FILE]`: results as JSON there.

Prints what the evaluator finds of the baseline and of the task's own strong program (time, floor, ratio, error on each
workload), and how long a whole evaluation takes by stages: of a program that passes, with confirmation and without; of
one that is hopelessly slow beside an incumbent; of one that is wrong. About a minute on an H200. Needs only Python,
NumPy, torch, Triton and this source tree.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ksearch.evaluators.gpu import nvml  # noqa: E402
from ksearch.evaluators.local import LocalEvaluator  # noqa: E402
from ksearch.evaluators.options import EvaluatorOptions  # noqa: E402
from ksearch.tasks import Task, load_task  # noqa: E402
from ksearch.types import Evaluation, Program  # noqa: E402

WRONG = "def run(x, *rest):\n    return x * 0.5\n"


def twin(program: Program, word: str) -> Program:
    """The same program under another id."""
    sources = {name: f"{text}\n# {word}\n" for name, text in program.sources.items()}
    return replace(program, sources=sources)


def show(label: str, evaluator: LocalEvaluator, program: Program, against: Sequence[Program] = ()) -> dict[str, Any]:
    start = time.monotonic()
    measured = evaluator.evaluate(program, against)
    took, found = time.monotonic() - start, measured.evaluation
    if not isinstance(found, Evaluation):
        print(f"{label}: lost after {took:.2f} s: {found.reason}", flush=True)
        return {"label": label, "seconds": took, "lost": found.reason}
    stages = {k: round(v, 3) for k, v in measured.record["stage_seconds"].items()}
    ratio = f"{found.speedup.value:.3f} ({found.speedup.low:.3f}..{found.speedup.high:.3f})" if found.speedup else ""
    print(f"{label}: {found.verdict} {ratio} {found.reason}\n  {took:.2f} s, ended in {found.stage}, stages {stages}")
    for flag in found.flags:
        print(f"  flag: {flag}")
    rows = []
    for w in found.workloads:
        if w.latency_ms is None or w.baseline_ms is None:
            continue
        rows.append(
            {
                "name": w.workload, "ms": w.latency_ms, "baseline_ms": w.baseline_ms, "floor_ms": w.floor_ms,
                "max_abs": w.max_abs_error,
            }
        )  # fmt: skip
        print(
            f"  {w.workload}: {w.latency_ms:.3f} ms, baseline {w.baseline_ms:.3f} ms, floor {w.floor_ms or 0:.3f} ms, "
            f"largest error {w.max_abs_error or 0:.2g}"
        )
    sys.stdout.flush()
    return {
        "label": label, "seconds": took, "verdict": str(found.verdict), "reason": found.reason, "stage": found.stage,
        "stages": stages, "ratio": ratio, "flags": list(found.flags), "workloads": rows, "confirmed": found.confirmed,
    }  # fmt: skip


def one_round(task: Task, options: EvaluatorOptions, label: str) -> list[dict[str, Any]]:
    strong, start = task.strong["triton"], time.monotonic()
    with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
        opened = time.monotonic() - start
        print(f"{label}: opened in {opened:.2f} s: the baseline is right on all {len(task.spec.workloads)} workloads")
        evaluator.bench.ceilings()  # once in two weeks
        found: list[dict[str, Any]] = [{"label": f"{label}: open", "seconds": opened}]
        found.append(show(f"{label}: strong", evaluator, strong))
        found.append(show(f"{label}: strong again", evaluator, twin(strong, "again")))
        found.append(show(f"{label}: baseline", evaluator, twin(task.baseline, "again")))
        found.append(show(f"{label}: baseline beside strong", evaluator, twin(task.baseline, "beside"), [strong]))
        found.append(show(f"{label}: wrong", evaluator, Program({"w.py": WRONG}, "w.py::run", "python")))
    return found


def main(arguments: list[str]) -> None:
    gpus: list[dict[str, Any]] = nvml.gpus()
    if not gpus:
        print("no NVIDIA GPU here: nothing measured")
        return
    print(f"{gpus[0]['name']}, driver {gpus[0]['driver']}, {gpus[0]['sm_mhz']} MHz, {gpus[0]['temperature_c']} degrees")
    task, found = load_task("trimul_gpu"), []
    with tempfile.TemporaryDirectory() as folder:
        plain = EvaluatorOptions(cache=Path(folder), confirm=False)
        found += one_round(task, plain, "without confirmation")
        with LocalEvaluator(task.spec, task.folder, options=replace(plain, confirm=True)) as evaluator:
            found.append(show("with confirmation: strong", evaluator, task.strong["triton"]))
    if arguments:
        Path(arguments[0]).write_text(json.dumps({"gpu": gpus[0]["name"], "found": found}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
