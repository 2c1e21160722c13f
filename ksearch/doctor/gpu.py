"""GPUs: what the driver, torch and the tools say, and one whole evaluation on one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ksearch.doctor.evaluating import RUNGS
from ksearch.doctor.report import Health, Line, fail, ok, warn
from ksearch.errors import EvaluatorError
from ksearch.evaluators.gpu import nvml
from ksearch.evaluators.gpu.doctor import Finding, gpu_checks
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.protocol import Lost
from ksearch.tasks import Task, load_task
from ksearch.types import Verdict

TASK = "trimul_gpu"
_DRIVER = Path("/proc/driver/nvidia/version")


def gpus(*, wanted: bool = False, quick: bool = False) -> Iterator[Line]:
    """One line where there is no NVIDIA GPU.

    Args:
        wanted: a GPU is needed, so what is missing for it fails.
        quick: without the evaluation.
    """
    if not nvml.gpus():
        yield _none(wanted)
        return
    sound = True
    for finding in gpu_checks():
        sound &= finding.health != "fail" or finding.name == "nvcc"
        yield _line(finding, wanted)
    if not quick and sound:
        yield from _evaluation(wanted)


def _none(wanted: bool) -> Line:
    if _DRIVER.exists() or shutil.which("nvidia-smi"):
        text = "an NVIDIA driver is installed, but shows no GPU"
        return fail("gpu", text, "`nvidia-smi` says why; in a container, start it with --gpus all", needed=wanted)
    text = 'no NVIDIA driver: tasks with device = "cuda" are not measured here'
    if wanted:
        return fail("gpu", text, "Install the NVIDIA driver; in a container, start it with --gpus all")
    return ok("gpu", text)


def _line(finding: Finding, wanted: bool) -> Line:
    return Line(finding.name, Health(finding.health), finding.found, finding.cure, needed=wanted)


def _smallest(task: Task) -> Task:
    spec = task.spec
    timed = [w for w in spec.workloads if w.timed]
    one = min(timed, key=lambda w: sum(t.size_bytes(spec.names(w.axes)) for t in (*spec.inputs, *spec.outputs)))
    return replace(task, spec=replace(spec, workloads=(one,)))


def _evaluation(wanted: bool) -> Iterator[Line]:
    """The baseline of a bundled task, its smallest workload, from start to verdict; and how well it was fenced."""
    task = _smallest(load_task(TASK))
    options = EvaluatorOptions(time_budget_s=0.3, confirm=False)
    start = time.monotonic()
    try:
        with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
            ready = time.monotonic()
            measured = evaluator.evaluate(task.baseline)
            took = f"start {ready - start:.1f} s, evaluation {time.monotonic() - ready:.1f} s"
    except EvaluatorError as error:
        yield fail("gpu evaluation", str(error), "Cure the lines above first", needed=wanted)
        return
    found = measured.evaluation
    if isinstance(found, Lost) or found.verdict is not Verdict.PASSED:
        why = found.reason if isinstance(found, Lost) else f"{found.verdict}: {found.reason}"
        cure = "Cure the lines above first; let other work on this GPU end"
        yield fail("gpu evaluation", f"task {TASK}: {why}", cure, needed=wanted)
    else:
        ratio = found.speedup.value if found.speedup else 0.0
        yield ok("gpu evaluation", f"task {TASK}: passed, {took}; the baseline against itself {ratio:.3f}x")
    yield from _fence(measured.record.get("sandbox") or {})


def _fence(sandbox: dict[str, object]) -> Iterator[Line]:
    climbed = sandbox.get("rungs")
    if not isinstance(climbed, list):
        return
    spaces = [rung for rung in climbed if str(rung).endswith("_ns")]
    missing = [rung for rung in ("pid_ns", "net_ns", "ipc_ns", "uts_ns", "mount_ns") if rung not in spaces]
    if not missing:
        yield ok("gpu sandbox", f"level {sandbox.get('level')}: {', '.join(map(str, climbed))}")
    for rung in missing:
        what, cure = RUNGS[rung]
        yield warn(f"gpu sandbox {rung}", f"candidates with CUDA run without {what}", cure)
