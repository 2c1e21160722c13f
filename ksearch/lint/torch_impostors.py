"""Wrong programs on torch, for tasks on GPUs. They fill the given outputs; sizes are found again by the shapes."""

from __future__ import annotations

import json

from ksearch.definition import TaskSpec, Tensor
from ksearch.lint.impostors import Impostor
from ksearch.tasks import Task
from ksearch.types import Program

_FIRST = "right only for the first workload"
# What is done to each output `value` of the reference, in float64 or the reference's own type.
_FLAWS = {
    "a constant, the mean": "value = torch.full_like(value, value.double().mean().item())",
    "the last element of each row left out": "if value.ndim and value.shape[-1] > 1:\n"
    "                value[..., -1] = value[..., -2]",
    "the last row left zero": "value[-1:] = 0",
    _FIRST: "value = value * float(axes == AXES[0])",
    "reference plus twice the tolerance": "rtol, atol = TOLERANCE[name]\n"
    "            value = value.double() + 2 * (atol + rtol * value.double().abs())",
}


def torch_impostors(task: Task) -> list[Impostor]:
    """Python programs for the task's evaluator; the honest twin comes first."""
    spec = task.spec
    made = [
        Impostor("the reference itself", _with_reference(task, ""), passes=True),
        Impostor("zeros", _plain(spec, ["out.zero_()"] * len(spec.outputs))),
        Impostor("ones", _plain(spec, ["out.copy_(torch.ones(out.shape, device=out.device))"] * len(spec.outputs))),
    ]
    if copies := _copies(spec):
        made.append(Impostor("an input returned", _plain(spec, copies)))
    several = sum(w.timed for w in spec.workloads) > 1  # impostors meet only these
    flaws = {n: f for n, f in _FLAWS.items() if n != _FIRST or several}
    made += [Impostor(name, _with_reference(task, flaw)) for name, flaw in flaws.items()]
    return made


def blind(task: Task) -> dict[str, Impostor]:
    """By input: the reference with the values of that input moved along by one, as if it had not been looked at."""
    return {
        t.name: Impostor(f"the values of {t.name} ignored", _with_reference(task, "", ignored=t.name))
        for t in task.spec.inputs
    }


def _arguments(spec: TaskSpec) -> str:
    return ", ".join(t.name for t in (*spec.inputs, *spec.outputs))


def _plain(spec: TaskSpec, statements: list[str]) -> Program:
    """A statement for each output, which it knows as `out`."""
    lines = ["import torch", "", "", f"def run({_arguments(spec)}):"]
    for tensor, statement in zip(spec.outputs, statements, strict=True):
        lines += [f"    out = {tensor.name}", f"    {statement}"]
    return Program({"impostor.py": "\n".join(lines) + "\n"}, "impostor.py::run", "python")


def _copies(spec: TaskSpec) -> list[str]:
    """For each output the statement that copies an input of its shape, or zeros; empty where no output has one."""
    sources = [next((t for t in spec.inputs if _alike(t, output)), None) for output in spec.outputs]
    if not any(sources):
        return []
    return [f"out.copy_({s.name})" if s else "out.zero_()" for s in sources]


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape


def _tables(spec: TaskSpec) -> str:
    known = [dict(w.axes) for w in sorted(spec.workloads, key=lambda w: not w.timed)]
    tables = {
        "AXES": known,
        "SHAPES": [[list(t.dims(spec.names(axes))) for t in spec.inputs] for axes in known],
        "INPUTS": [t.name for t in spec.inputs],
        "OUTPUTS": [t.name for t in spec.outputs],
        "TOLERANCE": {t.name: [spec.tolerance[t.dtype].rtol, spec.tolerance[t.dtype].atol] for t in spec.outputs},
    }
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in tables.items())


def _with_reference(task: Task, flaw: str, ignored: str = "") -> Program:
    """The task's own reference as a program, with `flaw` done to each output, or an input's values moved along.

    Axes that no shape shows (how inputs are drawn) are those of the first workload with these shapes.
    """
    spec = task.spec
    inputs, outputs = ([t.name for t in tensors] for tensors in (spec.inputs, spec.outputs))
    text = f"""\
import torch
from task_reference import reference

{_tables(spec)}
IGNORED = {json.dumps(ignored)}


def moved(tensor):
    if tensor.numel() == 1:
        return tensor + 1
    flat = tensor.reshape(-1)
    return torch.cat([flat[-1:], flat[:-1]]).view(tensor.shape)


def run({_arguments(spec)}):
    given = dict(zip(INPUTS, ({", ".join(inputs)},)))
    targets = dict(zip(OUTPUTS, ({", ".join(outputs)},)))
    axes = AXES[SHAPES.index([list(a.shape) for a in given.values()])]
    with torch.no_grad():
        copies = {{name: moved(a) if name == IGNORED else a.clone() for name, a in given.items()}}
        found = reference(copies, dict(axes))
        for name, target in targets.items():
            value = torch.as_tensor(found[name], device=target.device).clone()
            {flaw or "pass"}
            if not target.dtype.is_floating_point and value.dtype.is_floating_point:
                value = value.ceil()
            target.copy_(value)
"""
    beside = {p.name: p.read_text(encoding="utf-8") for p in task.folder.glob("*.py") if p != task.reference_path}
    sources = {**beside, "impostor.py": text, "task_reference.py": task.reference_source}
    return Program(sources, "impostor.py::run", "python")
