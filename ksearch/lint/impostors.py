"""Programs that are wrong on purpose. A task that lets one of them pass would be won by it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ksearch.definition import TaskSpec, Tensor
from ksearch.tasks import Task
from ksearch.types import Program


@dataclass(frozen=True, slots=True)
class Impostor:
    name: str
    program: Program
    passes: bool = False  # True for the honest twin: the same program without the flaw


def impostors(task: Task) -> list[Impostor]:
    """Python programs for the task's evaluator; the honest twin comes first."""
    spec = task.spec
    made = [
        Impostor("the reference itself", _with_reference(task, "pass"), passes=True),
        Impostor("zeros", _program(spec, "out[...] = 0")),
        Impostor("ones", _program(spec, "out[...] = 1")),
    ]
    if copies := _copies(spec):
        made.append(Impostor("an input returned", _program(spec, *copies)))
    made += [
        Impostor("the last element of each row left out", _with_reference(task, _LEFT_OUT)),
    ]
    if sum(w.timed for w in spec.workloads) > 1:  # impostors meet only these
        made.append(Impostor("right only for the first workload", _with_reference(task, _FIRST_ONLY)))
    return made


_LEFT_OUT = "value[..., -1] = value[..., -2] if value.ndim and value.shape[-1] > 1 else 0"
_FIRST_ONLY = "value *= axes == AXES[0]"


def _signature(spec: TaskSpec) -> str:
    return ", ".join(t.name for t in (*spec.inputs, *spec.outputs))


def _program(spec: TaskSpec, *statements: str) -> Program:
    """Destination passing; a statement is for one output `out`, or for all where there is only one."""
    lines = [f"def run({_signature(spec)}):"]
    bodies = statements if len(statements) == len(spec.outputs) else statements * len(spec.outputs)
    for tensor, body in zip(spec.outputs, bodies, strict=True):
        lines += [f"    out = {tensor.name}", f"    {body}"]
    return Program({"impostor.py": "\n".join(lines) + "\n"}, "impostor.py::run", "python")


def _copies(spec: TaskSpec) -> list[str]:
    """For each output the statement that copies an input of the same shape and dtype; [] where one has none."""
    statements = []
    for output in spec.outputs:
        source = next((t for t in spec.inputs if _alike(t, output)), None)
        if source is None and len(spec.outputs) == 1:
            return []
        statements.append(f"out[...] = {source.name}" if source else "out[...] = 0")
    return statements if any("= 0" not in s for s in statements) else []


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _with_reference(task: Task, flaw: str) -> Program:
    """The task's own reference as a program, with `flaw` done to each output `value`. The sizes of the known
    workloads are found again by the shapes of the inputs: Python programs do not receive the axes."""
    spec = task.spec
    known = [dict(w.axes) for w in spec.workloads]
    shapes = [[list(t.dims(spec.names(axes))) for t in spec.inputs] for axes in known]
    inputs, outputs = ([t.name for t in tensors] for tensors in (spec.inputs, spec.outputs))
    text = f"""\
import numpy as np
from task_reference import reference

AXES = {json.dumps(known)}
SHAPES = {json.dumps(shapes)}
INPUTS = {json.dumps(inputs)}
OUTPUTS = {json.dumps(outputs)}


def run({_signature(spec)}):
    given = dict(zip(INPUTS, ({", ".join(inputs)},)))
    targets = dict(zip(OUTPUTS, ({", ".join(outputs)},)))
    axes = AXES[SHAPES.index([list(a.shape) for a in given.values()])]
    with np.errstate(all="ignore"):
        found = reference({{name: a.copy() for name, a in given.items()}}, dict(axes))
        for name, target in targets.items():
            value = np.array(found[name])
            {flaw}
            target[...] = value
"""
    beside = {p.name: p.read_text(encoding="utf-8") for p in task.folder.glob("*.py") if p != task.reference_path}
    sources = {**beside, "impostor.py": text, "task_reference.py": task.reference_source}
    return Program(sources, "impostor.py::run", "python")
