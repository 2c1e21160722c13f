"""A package with a torch custom operator: fake kernel, dispatch on shapes, the reference for shapes never tested."""

from __future__ import annotations

import json

from ksearch.definition import CUDA_ONLY, TaskSpec
from ksearch.exporters.common import FILES, Exported, ExportError, runtime, slug, types_of
from ksearch.tasks import Task, foreign
from ksearch.types import Program

_PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@PACKAGE@"
version = "0.1.0"
description = "torch operator ksearch::@OP@, found by K-Search"
requires-python = ">=3.10"
dependencies = ["torch>=2.4", "numpy"]
"""


def torch_op(program: Program, task: Task, author: str) -> Exported:
    """The package `ksearch_TASK`, whose operator is `torch.ops.ksearch.TASK`."""
    spec, op = task.spec, slug(task.name)
    package = f"ksearch_{op}"
    types = types_of(task)
    for name, dtype in types.items():
        if dtype in CUDA_ONLY and dtype.startswith("float8") and spec.device == "cpu":
            raise ExportError(f"{name} is {dtype}: such an operator is for GPUs only")
    several = ", ".join(["torch.Tensor"] * len(spec.outputs))
    marks = {
        "PACKAGE": package,
        "OP": op,
        "TITLE": spec.title or task.name,
        "PROGRAM": program.id,
        "AUTHOR": author,
        "SIGNATURE": _signature(spec, types),
        "RETURNS": "torch.Tensor" if len(spec.outputs) == 1 else f"tuple[{several}]",
        "ARGUMENTS": ", ".join(t.name for t in spec.inputs),
        "TESTED": json.dumps([[w.axes[a] for a in spec.axes] for w in spec.workloads]),
        "SINGLE": repr(len(spec.outputs) == 1),
        "TOLERANCE": repr({d: {"rtol": t.rtol, "atol": t.atol} for d, t in spec.tolerance.items()}),
        "LANGUAGE": program.language,
        "DEVICE": spec.device,
        "TORCH_REFERENCE": repr(spec.device == "cuda"),
    }
    files = {
        f"{package}/__init__.py": _filled("op_package.py.txt", marks),
        f"{package}/kernel.py": runtime(program, task, every_axis=True).lstrip(),
        f"{package}/fallback/reference.py": task.reference_source,
        **{f"{package}/fallback/{name}": text for name, text in _beside(task).items()},
        "test_op.py": _filled("op_test.py.txt", marks),
        "pyproject.toml": _fill(_PYPROJECT, marks),
        "README.md": _filled("op_readme.md.txt", marks),
    }
    return Exported(files, ("`python -m pytest test_op.py` in that folder checks it, torch.compile included",))


def _beside(task: Task) -> dict[str, str]:
    """Modules that the reference may import."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(task.folder.glob("*.py"))
        if path.name not in ("reference.py", "baseline.py", "original.py")
        or (path.name == "original.py" and not foreign.about(task.folder))
    }


def _signature(spec: TaskSpec, types: dict[str, str]) -> str:
    scalars = [t.name for t in spec.inputs if not t.shape]
    return ", ".join(f"{t.name}: {_kind(t.name, scalars, types)}" for t in spec.inputs)


def _kind(name: str, scalars: list[str], types: dict[str, str]) -> str:
    if name not in scalars:
        return "torch.Tensor"
    return "float" if types[name].startswith(("float", "bfloat")) else "int"


def _filled(name: str, marks: dict[str, str]) -> str:
    return _fill((FILES / name).read_text(encoding="utf-8"), marks)


def _fill(text: str, marks: dict[str, str]) -> str:
    for mark, value in marks.items():
        text = text.replace(f"@{mark}@", value)
    return text
