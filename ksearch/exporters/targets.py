"""The three targets: FlashInfer-Bench, GPU MODE, torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from ksearch.exporters.common import Exported, ExportError, runtime, slug
from ksearch.exporters.torch_op import torch_op
from ksearch.tasks import Task, foreign
from ksearch.types import Program

DISTINCT = 8  # characters of a program's id in a name


def flashinfer_bench(program: Program, task: Task, author: str) -> Exported:
    """A solution as JSON. The kernel is called through a Python file, whatever its language."""
    about = foreign.about(task.folder)
    names = about.get("inputs") or [t.name for t in task.spec.inputs]
    used, outputs = [t.name for t in task.spec.inputs], [t.name for t in task.spec.outputs]
    notes = []
    if about.get("format") != "flashinfer-bench":
        notes.append(f"task {task.name} was not read from a definition: one of this name, with these inputs, is needed")
    parameters = [*names, *outputs]  # optional inputs that the task leaves out are taken and not looked at
    copies = "\n".join(f"    {name}.copy_(found[{n}])" for n, name in enumerate(outputs))
    code = (
        runtime(program, task)
        + f"""

def run({", ".join(parameters)}):
    \"\"\"Destination passing: the outputs are the last arguments.\"\"\"
    found = call({", ".join(used)})
{copies}
"""
    )
    entry = "main.py"
    solution = {
        "name": f"{slug(task.name)}_ksearch_{program.id[:DISTINCT]}",
        "definition": about.get("definition") or task.name,
        "author": author,
        "spec": {
            "language": "triton" if program.language == "triton" else "python",
            "target_hardware": [task.spec.device],
            "entry_point": f"{entry}::run",
            "dependencies": ["torch"],
            "destination_passing_style": True,
        },
        "sources": [{"path": entry, "content": code}],
        "description": f"Found by K-Search; {program.language}, program {program.id}.",
    }
    text = json.dumps(solution, indent=1, ensure_ascii=False) + "\n"
    return Exported({f"{solution['name']}.json": text}, tuple(notes))


def gpu_mode(program: Program, task: Task, author: str) -> Exported:
    """`submission.py`: one file with `custom_kernel(data)`."""
    about = foreign.about(task.folder)
    notes = []
    if about.get("format") != "gpu-mode":
        notes.append("the task was not read from a GPU MODE problem: data is taken as a tuple of the inputs, in order")
    if task.spec.device == "cpu":
        notes.append("the program runs on a CPU: data that lies on a GPU is copied there and back")
    code = f'"""Task {task.name}, program {program.id[:12]}, by {author}."""\n\n' + runtime(program, task)
    code += f"\n\nNUMBERS = {about.get('numbers', [])!r}\n" + _GPU_MODE
    return Exported({"submission.py": code}, tuple(notes))


_GPU_MODE = '''

def _leaves(data, path=""):
    """Tensors in nested tuples, lists and dicts, and the numbers that the program takes, in order."""
    if isinstance(data, torch.Tensor) or path in NUMBERS:
        return [data]
    if not isinstance(data, (dict, tuple, list)):
        return []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    return [found for key, value in items for found in _leaves(value, f"{path}_{key}" if path else str(key))]


def custom_kernel(data):
    found = call(*_leaves(data))
    return found[0] if len(found) == 1 else tuple(found)
'''

Export = Callable[[Program, Task, str], Exported]
TARGETS: Mapping[str, Export] = {
    "flashinfer-bench": flashinfer_bench,
    "gpu-mode": gpu_mode,
    "torch-op": torch_op,
}


def export_program(program: Program, task: Task, target: str, author: str) -> Exported:
    """Files that make the program usable in `target`.

    Raises:
        ExportError: no such target, or the program is of a kind that it cannot take.
    """
    if target not in TARGETS:
        raise ExportError(f"{target!r} is no target. Use one of {', '.join(TARGETS)}")
    return TARGETS[target](program, task, author)
