"""The sandbox, rung by rung, and one whole evaluation."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ksearch.doctor.report import Line, fail, ok, warn
from ksearch.errors import EvaluatorError
from ksearch.evaluators import jail
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.jailed import Jailed
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import Broken
from ksearch.protocol import Lost
from ksearch.tasks import Task, load_task
from ksearch.types import Evaluation, Verdict

TASK = "rmsnorm_residual"
_REPORT = "No cure is known: please report it with the output of `ksearch doctor --json`"
_DOCKER = "In Docker: run with --privileged"
# Rung -> what is missing without it, and how to get it.
RUNGS: Mapping[str, tuple[str, str]] = {
    "session": ("a process group of their own", _REPORT),
    "limits": ("limits on memory, files and processor time", _REPORT),
    "pinned": ("a core of their own", "Allow the system call sched_setaffinity"),
    "uid": ("a user of their own", _REPORT),
    "user_ns": ("a user name space", "sysctl kernel.unprivileged_userns_clone=1 (Ubuntu: "
                "kernel.apparmor_restrict_unprivileged_userns=0)"),
    "no_capabilities": ("dropping capabilities", _REPORT),
    "no_new_privs": ("a bar on gaining privileges", _REPORT),
    "pid_ns": ("a process name space: they see other processes", f"{_DOCKER} --security-opt seccomp=unconfined"),
    "net_ns": ("a network name space: they reach the network", f"{_DOCKER} or --network none"),
    "ipc_ns": ("an IPC name space", _DOCKER),
    "uts_ns": ("a host name space", _DOCKER),
    "mount_ns": ("a mount name space: they see home and temporary folders", _DOCKER),
    "landlock": ("Landlock: they may open files outside their folder", "Use Linux 5.13 or newer with landlock in lsm="),
    "seccomp": ("a filter of system calls: they may open sockets and start processes",
                "Use a kernel with CONFIG_SECCOMP_FILTER"),
}  # fmt: skip


def sandbox() -> Iterator[Line]:
    """Put a process into the jail, and see which rungs of the ladder it climbed."""
    task = load_task(TASK)
    bench = Bench(task.spec, task.folder, EvaluatorOptions())
    try:
        climbed = _climb(bench)
    except (Broken, EvaluatorError, OSError) as error:
        yield fail("sandbox", f"no process can be jailed: {error}", "Without a sandbox nothing is run: " + _REPORT)
        return
    finally:
        bench.close()
    level = jail.level(climbed)
    # root changes its user id; everybody else gets a user name space instead.
    wanted = [rung for rung in RUNGS if rung != ("uid" if os.geteuid() else "user_ns")]
    if level == "namespaces":
        yield ok("sandbox", f"level {level}: {', '.join(climbed)}")
    else:
        cure = "Results say which level they were measured at. The lines below name what is missing"
        yield warn("sandbox", f"level {level}: {', '.join(climbed)}", cure)
    for rung in wanted:
        if rung not in climbed:
            what, cure = RUNGS[rung]
            yield warn(f"sandbox {rung}", f"candidates run without {what}", cure)


def _climb(bench: Bench) -> list[str]:
    spec = bench.jail(folder="")
    folder = Path(bench.home, "doctor")
    folder.mkdir(mode=0o700)
    if spec.uid is not None:
        os.chown(folder, spec.uid, spec.uid)
    process = Jailed(bench.template, replace(spec, folder=str(folder)))
    try:
        # The last rungs are climbed by the process itself: once it answers, it has.
        process.ask({"do": "drop", "key": "nothing"}, (), 20.0)
        return list(process.rungs)
    finally:
        process.close()


def evaluation() -> Line:
    """The baseline of a small bundled task from source to verdict."""
    task = load_task(TASK)
    options = EvaluatorOptions(time_budget_s=0.3, confirm=False)
    start = time.monotonic()
    try:
        with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
            ready = time.monotonic()
            found, waited_s = _measured(evaluator, task)
            if isinstance(found, Lost) or found.verdict is not Verdict.PASSED:  # other work may have disturbed it
                found, more_s = _measured(evaluator, task)
                waited_s += more_s
    except EvaluatorError as error:
        return fail("evaluation", str(error), "Cure the lines above first")
    took = f"start {ready - start:.1f} s, evaluation {time.monotonic() - ready - waited_s:.1f} s"
    if waited_s > 0.1:
        took += f" after {waited_s:.1f} s of waiting for the timing lock"
    return _judged(found, took)


def _measured(evaluator: LocalEvaluator, task: Task) -> tuple[Evaluation | Lost, float]:
    measured = evaluator.evaluate(task.baseline)
    return measured.evaluation, float(measured.record.get("stage_seconds", {}).get("lease", 0.0))


def _judged(found: Evaluation | Lost, took: str) -> Line:
    if isinstance(found, Lost):
        return fail("evaluation", f"task {TASK}: lost: {found.reason}", "Cure the lines above first")
    if found.verdict is not Verdict.PASSED or found.speedup is None:
        disturbed = found.verdict in (Verdict.FORGED, Verdict.TOO_FAST, Verdict.TIMEOUT)
        cure = (
            "Other work disturbs the timing: let it end, then try again" if disturbed else "Cure the lines above first"
        )
        return fail("evaluation", f"task {TASK}: {found.verdict}: {found.reason}", cure)
    ratio = found.speedup
    what = f"task {TASK}: passed, {took}; the baseline against itself {ratio.value:.3f}x"
    if not 0.95 < ratio.value < 1.05:
        return warn("evaluation", f"{what}: times are noisy", "Let other work on this machine end")
    return ok("evaluation", f"{what} ({ratio.low:.3f} to {ratio.high:.3f})")
