"""What loads and runs of a FlashInfer-Bench data set, definition by definition, as a table for the documentation.

    python benchmarks/flashinfer_trace.py DATASET -o flashinfer_trace.jsonl [--device cuda] [--programs]
    python benchmarks/flashinfer_trace.py --table CPU.jsonl [CUDA.jsonl] > docs/flashinfer-trace.md

Needs torch. Results are appended; what is in the file already is not done again. Each definition has a process of its
own and 180 seconds. `--programs` measures the definition's own code as a program, too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ksearch.errors import KSearchError
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.taskcode import load
from ksearch.lint import probe
from ksearch.lint.reference import Mistake, Reference
from ksearch.protocol import Lost
from ksearch.tasks import Task, foreign, load_task, why_not_here

LIMIT_S = 180
Row = dict[str, Any]


def look(path: str, device: str, programs: bool) -> Row:
    definition = json.loads(Path(path).read_text())
    row: Row = {"definition": definition["name"], "op_type": definition["op_type"], "device": device}
    try:
        task = load_task(foreign.place(path, device))
    except KSearchError as error:
        return row | {"loads": False, "why": str(error)}
    about = foreign.about(task.folder)
    row |= {"loads": True, "workloads": len(task.spec.workloads), "notes": about["notes"]}
    if reason := why_not_here(task):
        return row | {"runs": False, "why": reason}
    start = time.monotonic()
    signal.alarm(LIMIT_S)
    try:
        row["runs"] = True
        if device == "cpu":
            reference = Reference(task)
            for check in (probe.loads, probe.runs, probe.is_finite, probe.is_deterministic, probe.unseen_shapes):
                check(reference)
            blind = [t.name for t in task.spec.inputs if _blind(reference, t)]
            row["blind"] = blind
        else:
            _on_gpu(task)
        if programs:
            options = EvaluatorOptions(time_budget_s=0.3, confirm=False)
            with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
                found = evaluator.evaluate(task.baseline).evaluation
            row["program"] = f"lost: {found.reason}" if isinstance(found, Lost) else f"{found.verdict}: {found.reason}"
    except Mistake as error:
        row |= {"runs": False, "why": str(error)}
    except KSearchError as error:
        row |= {"runs": False, "why": str(error)}
    finally:
        signal.alarm(0)
    return row | {"seconds": round(time.monotonic() - start, 1)}


def _on_gpu(task: Task) -> None:
    """The reference on torch tensors, on every workload: shapes, types, no NaN.

    Raises:
        Mistake: it is not so.
    """
    import torch

    torch.set_grad_enabled(False)
    scope = load(task.reference_path)
    for workload in task.spec.workloads:
        axes, names = dict(workload.axes), task.spec.names(workload.axes)
        generator = torch.Generator("cuda").manual_seed(1)
        try:
            inputs = scope["inputs"](axes, generator)
            outputs = scope["reference"](inputs, axes)
        except Exception as error:  # boundary: the definition's code
            raise Mistake(f"{type(error).__name__}: {error}", "") from error
        for tensor in task.spec.outputs:
            value = outputs[tensor.name]
            if tuple(value.shape) != tensor.dims(names) or str(value.dtype) != f"torch.{tensor.dtype}":
                raise Mistake(f"{tensor.name} is {value.dtype}{list(value.shape)}", "")
            if value.is_floating_point() and bool(value.float().isnan().any()):
                raise Mistake(f"{tensor.name} of workload {workload.name} has NaN", "")
        del inputs, outputs


def _blind(reference: Reference, tensor: Any) -> bool:
    try:
        probe.depends_on(reference, tensor)
    except Mistake:
        return True
    return False


def child(queue: Any, *order: Any) -> None:
    queue.put(look(*order))


def one(path: str, device: str, programs: bool) -> Row:
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()
    process = context.Process(target=child, args=(queue, path, device, programs))
    process.start()
    process.join(LIMIT_S + 60)
    if process.is_alive():
        process.kill()
    if queue.empty():
        stem, kind = Path(path).stem, Path(path).parent.name
        slow = process.exitcode in (-signal.SIGALRM, None)
        why = f"its reference takes more than {LIMIT_S} s" if slow else f"the process ended: {process.exitcode}"
        return {"definition": stem, "op_type": kind, "device": device, "loads": True, "runs": False, "why": why}
    return dict(queue.get())


def sweep(arguments: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    output = Path(arguments.output)
    lines = output.read_text().splitlines() if output.exists() else []
    done = {json.loads(line)["definition"] for line in lines}
    wanted = [p for p in foreign.expand(arguments.dataset) if Path(p).stem not in done]
    wanted = [p for p in wanted if not arguments.only or re.search(arguments.only, p)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(lambda path: one(path, arguments.device, arguments.programs), wanted):
            with output.open("a") as file:
                file.write(json.dumps(row) + "\n")
            verdict = "runs" if row.get("runs") else row.get("why", "")
            print(row["definition"], verdict[:120], row.get("program", "")[:80], flush=True)


# --- the page

HEAD = """\
# The flashinfer-trace definitions

What K-Search makes of each definition of the public flashinfer-trace data set, as it stood before its tensors moved to
another place. Written by `benchmarks/flashinfer_trace.py`; how such definitions are read is in
[Tasks in other formats](formats.md).

- **loads**: the definition and its workloads become a task that `ksearch lint --reference-only` takes.
- **CPU**: the reference ran in torch on a CPU, on every workload that is used, gave finite values, the same for the
  same inputs, and ran on unseen sizes. Tensors of a workload may take 64 MiB. *No effect seen of X*: with other values
  of X the outputs stayed within the tolerance. *passed*: see GPU.
- **GPU**: the reference ran on an NVIDIA H200, types as they are, on every workload that is used: shapes and types as
  declared, no NaN. Tensors of a workload may take 8 GiB. *passed*: its code was also measured as a program, by the
  evaluator; what else the evaluator said stands there in its words.
- **workloads**: how many are used on the CPU; *made* where the data set has none for the definition.
"""


def table(files: list[str]) -> str:
    rows = [json.loads(line) for name in files for line in Path(name).read_text().splitlines()]
    cpu = {r["definition"]: r for r in rows if r["device"] == "cpu"}
    gpu = {r["definition"]: r for r in rows if r["device"] == "cuda"}  # a later file with programs wins
    names = sorted(cpu, key=lambda n: (cpu[n]["op_type"], n))
    counts = Counter("runs" if cpu[n].get("runs") else "not" for n in names)
    passed = sum(bool(r.get("runs")) for r in gpu.values())
    loads = sum(cpu[n]["loads"] for n in names)
    text = [HEAD, f"Of {len(names)} definitions, {loads} load, {counts['runs']} run on the CPU"]
    text[-1] += f", {passed} of {len(gpu)} on the GPU.\n" if gpu else "; the GPU was not tried.\n"
    text += ["| definition | workloads | CPU | GPU |", "|---|---|---|---|"]
    for name in names:
        row = cpu[name]
        made = any("were made up" in note for note in row.get("notes", ()))
        count = f"{row.get('workloads', '-')}{' made' if made else ''}"
        text.append(f"| `{name}` | {count} | {_cpu(row)} | {_gpu(gpu.get(name))} |")
    return "\n".join(text) + "\n"


def _cpu(row: Row) -> str:
    if not row["loads"] or not row.get("runs"):
        return _clean(row.get("why", ""))
    program = row.get("program", "")
    found = "passed" if program.startswith("passed") else f"runs; {_clean(program)}" if program else "runs"
    return found + (f"; no effect seen of {', '.join(row['blind'])}" if row.get("blind") else "")


def _gpu(row: Row | None) -> str:
    if row is None:
        return "-"
    if not row.get("runs"):
        return _clean(row.get("why", ""))
    if "program" not in row:
        return "runs; draws at random" if row["op_type"] == "sampling" else "runs"
    return "passed" if row["program"].startswith("passed") else _clean(row["program"])


def _clean(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("-o", "--output", default="flashinfer_trace.jsonl")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", default="", help="definitions whose path matches this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--table", nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.table:
        sys.stdout.write(table(arguments.table))
    else:
        sweep(arguments)


if __name__ == "__main__":
    main()
