"""What every export starts from: the program, its task, and how it is called from torch."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksearch.definition import TaskSpec, Tensor
from ksearch.errors import KSearchError
from ksearch.tasks import Task, foreign
from ksearch.types import Program

FILES = Path(__file__).parent / "files"


class ExportError(KSearchError):
    """A program that this target cannot take. The message says why, and what would help."""


@dataclass(frozen=True)
class Exported:
    """Files to write, by relative path, and what is worth saying about them."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())


def types_of(task: Task) -> dict[str, str]:
    """The dtype of each tensor outside: a definition's bfloat16, which NumPy tasks hold as float32."""
    spec, narrow = task.spec, {}
    for tensor in foreign.about(task.folder).get("tensors", ()):
        narrow[tensor["name"]] = tensor["dtype"]
    return {t.name: narrow.get(t.name, t.dtype) for t in (*spec.inputs, *spec.outputs)}


def runtime(program: Program, task: Task, every_axis: bool = False) -> str:
    """A Python module, complete in itself but for torch and NumPy: `call(*inputs) -> [outputs]`.

    Args:
        every_axis: the sizes have to be known in full, not only as far as the program looks at them.

    Raises:
        ExportError: the program writes to its inputs, or an axis cannot be told from the shapes.
    """
    spec = task.spec
    if mutable := [t.name for t in spec.inputs if t.mutable]:
        raise ExportError(f"the program writes to its inputs ({', '.join(mutable)}), and no target takes that yet")
    inverse = inverses(spec, "" if every_axis else program)
    types = types_of(task)
    about = {
        "task": task.name,
        "id": program.id,
        "language": program.language,
        "device": spec.device,
        "entry_point": program.entry_point,
        "axes": list(spec.axes),
        "constants": dict(spec.constants),
        "inputs": [_tensor(t, types) for t in spec.inputs],
        "outputs": [_tensor(t, types) for t in spec.outputs],
        "inverse": inverse,
    }
    head = f"SPEC = {_literal(about)}\n\nSOURCES = {_literal(dict(program.sources))}\n"
    return head + (FILES / "kernel_runtime.py.txt").read_text(encoding="utf-8")


def inverses(spec: TaskSpec, program: Program | str) -> dict[str, tuple[str, str]]:
    """Formula -> (axis, expression of its `size`), for axes that no input has as a plain dimension.

    Raises:
        ExportError: one of them cannot be told.
    """
    dims = [d for t in spec.inputs for d in t.shape]
    found: dict[str, tuple[str, str]] = {}
    for axis in spec.axes:
        if axis in dims:
            continue
        single = [d.values[0] for a, d in spec.domain.items() if a == axis and len(d.values) == 1]
        if single:  # only ever one size: no shape has to tell it
            found.setdefault(f"= {axis}", (axis, str(single[0])))
            continue
        options = [(d, e) for d in dims if isinstance(d, str) and (e := _inverse(d, axis, spec))]
        if not options and isinstance(program, Program) and not _looks_at(program, axis):
            found[f"= {axis}"] = (axis, "0")
            continue
        if not options:
            raise ExportError(
                f"axis {axis} cannot be told from the shapes of the inputs, and the program may depend on it"
            )
        found[options[0][0]] = (axis, options[0][1])
    return found


def _looks_at(program: Program, axis: str) -> bool:
    """Python and Triton programs get no axes; in others the name stands in the parameters and nowhere else."""
    if program.language in ("python", "triton"):
        return False
    return sum(len(re.findall(rf"\b{axis}\b", text)) for text in program.sources.values()) > 1


def _inverse(formula: str, axis: str, spec: TaskSpec) -> str:
    """`batch + 1` -> `size - 1`; `2 * n` -> `size // 2`; "" for anything else."""
    match = re.fullmatch(rf"{axis} ([+-]) (\d+)|(\w+) \* {axis}|{axis} \* (\w+)", formula)
    if match is None:
        return ""
    if match[1]:
        return f"size {'-' if match[1] == '+' else '+'} {match[2]}"
    factor = match[3] or match[4]
    told = factor in {d for t in spec.inputs for d in t.shape}  # another axis, which is known by then
    return f"size // {factor}" if factor.isdigit() or factor in spec.constants or told else ""


def _tensor(tensor: Tensor, types: Mapping[str, str]) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": types[tensor.name], "shape": list(tensor.shape)}


def _literal(value: Any) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return text if ast.literal_eval(text) == value else repr(value)


def slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).strip("_") or "kernel"
