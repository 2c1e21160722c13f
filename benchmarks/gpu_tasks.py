"""Every bundled GPU task on this machine's GPU: `ksearch verify` of its programs, and a table for the documentation.

`python benchmarks/gpu_tasks.py [TASK...] [--seconds S] [--output FOLDER]`

Without names, all bundled tasks with device "cuda". Of each task every strong program and a second copy of the baseline
are verified: a certificate per task in FOLDER, and rows of Markdown as soon as a task is done, so an
interrupted run keeps what it has. A strong program whose libraries are not installed is left out and named. Needs
Python with NumPy, pydantic, torch and Triton, and this source tree.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ksearch.errors import EvaluatorError  # noqa: E402
from ksearch.evaluators.gpu import nvml  # noqa: E402
from ksearch.tasks import Task, bundled_tasks, load_task  # noqa: E402
from ksearch.types import Program  # noqa: E402

HEAD = (
    "| workload | program | time, ms | floor, ms | time over floor | baseline, ms | times faster | largest error |\n"
    "|---|---|---|---|---|---|---|---|"
)
BASELINE = "baseline, again"
FOLDER = ROOT / "build" / "gpu-certificates"
NEEDED = ("pydantic", "torch", "triton")


def gpu_tasks() -> list[str]:
    return [name for name in bundled_tasks() if load_task(name).spec.device == "cuda"]


def missing(program: Program) -> list[str]:
    """Modules that the program imports and this Python does not have."""
    roots = set()
    for text in program.sources.values() if program.language in ("python", "triton") else ():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                roots.add(node.module.partition(".")[0])
    own = {Path(name).stem for name in program.sources}
    return sorted(name for name in roots - own if importlib.util.find_spec(name) is None)


def twin(program: Program) -> Program:
    """The same program under another id, so that it is measured beside the first."""
    comment = "#" if program.language in ("python", "triton") else "//"
    return replace(program, sources={name: f"{text}\n{comment} again\n" for name, text in program.sources.items()})


def programs(task: Task) -> dict[str, Program]:
    """By name: the strong ones that can run here, and the baseline again."""
    found = {}
    for name, program in task.strong.items():
        if lacking := missing(program):
            print(f"{task.name}: strong {name} left out: {', '.join(lacking)} not installed", flush=True)
        else:
            found[name] = program
    return {**found, BASELINE: twin(task.baseline)}


def rows(body: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Lines of the table for one certificate: a line per workload and program, then one for all workloads."""
    lines = []
    for result in body["results"]:
        name = names[result["program"]]
        if result["speedup"] is None:
            lines.append(f"| - | {name} | {result['verdict']} at {result['stage']}: {result['reason']} | | | | | |")
            continue
        for w in result["workloads"]:
            over = w["median_ms"] / w["floor_ms"] if w["floor_ms"] else None
            cells = [w["name"], name, _figure(w["median_ms"]), _figure(w["floor_ms"]), _figure(over, 2)]
            cells += [_figure(w["baseline_ms"]), _ratio(w["speedup"]), _figure(w["max_abs_error"], 2)]
            lines.append(f"| {' | '.join(cells)} |")
        mean = f"{body['task']['mean']} mean"
        lines.append(f"| {mean} | {name} | {_figure(result['latency_ms'])} | | | | {_ratio(result['speedup'])} | |")
    return lines


def _figure(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _ratio(ratio: Mapping[str, float]) -> str:
    return f"{ratio['value']:.3g} ({ratio['low']:.3g} to {ratio['high']:.3g})"


def measure(name: str, seconds: float, folder: Path) -> bool:
    """One task; whether all of its programs passed."""
    from ksearch.verify import Effort, verify

    task, start = load_task(name), time.monotonic()
    chosen, effort = programs(task), Effort(first_s=min(1.0, seconds), confirm_s=seconds)
    try:
        done = verify(task, list(chosen.values()), (), effort, lambda text: print(f"{name}: {text}", file=sys.stderr))
    except EvaluatorError as error:
        print(f"\n### `{name}`\n\nnot measured: {error}", flush=True)
        return False
    path = folder / f"{name}.certificate.json"
    path.write_bytes(done.data)
    print(f"\n### `{name}`\n\n{HEAD}")
    names = {p.id: label for label, p in chosen.items()}
    print("\n".join(rows(done.body, names)))
    flags = [flag for result in done.body["results"] for flag in result["flags"]]
    notes = "".join(f"\n- {line}" for line in (*done.body["problems"], *dict.fromkeys(flags)))
    for program, label in names.items():
        notes = notes.replace(program[:12], label)
    print(notes)
    print(
        f"{'Passed' if done.passed else 'NOT PASSED'} in {time.monotonic() - start:.0f} s; certificate: {path}",
        flush=True,
    )
    return done.passed


def main(arguments: Sequence[str]) -> int:
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"default: {', '.join(gpu_tasks())}")
    parser.add_argument("--seconds", type=float, default=8.0, help="of timing per program, all workloads (default 8)")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="FOLDER", help=f"default: {FOLDER}")
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.tasks) - set(gpu_tasks())):
        parser.error(f"no bundled GPU task: {', '.join(unknown)}; there are {', '.join(gpu_tasks())}")
    gpus: list[dict[str, Any]] = nvml.gpus()
    if not gpus:
        print("no NVIDIA GPU here: nothing measured")
        return 0
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print(f"not installed for {sys.executable}: {', '.join(absent)}: nothing measured")
        return 1
    chosen.output.mkdir(parents=True, exist_ok=True)
    gpu = gpus[0]
    print(f"{gpu['name']}, driver {gpu['driver']}, {gpu['sm_mhz']} MHz, {gpu['temperature_c']} degrees", flush=True)
    passed = [measure(name, chosen.seconds, chosen.output) for name in chosen.tasks or gpu_tasks()]
    print(f"\n{sum(passed)} of {len(passed)} tasks: every program passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted: the tables above and their certificates are complete")
