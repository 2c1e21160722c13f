"""KernelBench: one Python file with `Model`, `get_inputs` and `get_init_inputs`."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ksearch.definition import DTYPE_BYTES
from ksearch.errors import TaskError, TorchMissing
from ksearch.syntax import parse
from ksearch.tasks.fields import listed, suggest
from ksearch.tasks.foreign.draft import BRIDGE, ORIGINAL, Draft, Tensor, plain_name
from ksearch.tasks.foreign.flashinfer_sizes import too_large
from ksearch.tasks.foreign.probe import ask
from ksearch.tasks.foreign.side import Side

_WANTED = {"Model": ast.ClassDef, "get_inputs": ast.FunctionDef, "get_init_inputs": ast.FunctionDef}
_MOST_BYTES = {"cpu": 64 << 20, "cuda": 24 << 30}  # its one size is large on purpose
_OURS = ("inputs", "reference", "awkward", "bridge", "DEVICE", "ARGUMENTS", "STATE", "OUTPUTS")


def read(path: Path, side: Side, device: str) -> Draft:
    """Raises:
    TaskError: it is no such file, or its shapes cannot be found out.
    TorchMissing: they can be found out only by running it.
    """
    text = look(path)
    found = _given(side) or _probed(path, side, device)
    axes = _axes(text)
    inputs = [Tensor(n, t["dtype"], _dims(t["shape"], axes)) for n, t in found["inputs"].items()]
    taken = {t.name for t in inputs} | set(axes)
    state = {key: _free(re.sub(r"\W", "_", key), taken) for key in found["state"]}
    inputs += [Tensor(state[k], t["dtype"], _dims(t["shape"], axes)) for k, t in found["state"].items()]
    many = len(found["outputs"]) > 1
    outputs = [
        Tensor(_free(f"y{n}" if many else "y", taken), t["dtype"], _dims(t["shape"], axes))
        for n, t in enumerate(found["outputs"])
    ]
    _check(path, inputs, outputs)
    notes = too_large([*inputs, *outputs], axes, device, _MOST_BYTES)
    others = found.get("others", {})
    notes += [f"{name} is always {value}: it is no input of the program." for name, value in others.items()]
    if state:
        notes.append(f"Weights of the model are inputs, fresh for every call: {listed(state.values())}.")
    axes = axes or {"problem": 1}
    draft = Draft(
        source=path, format="kernelbench", name=plain_name(path.stem), title=path.stem, description=_about(path, text),
        device=device, axes={a: {"values": [v]} for a, v in axes.items()}, inputs=inputs, outputs=outputs,
        workloads=[{"name": "as_given", "axes": dict(axes)}], original=text, glue="", baseline="", notes=notes,
        details={"state": state, "arguments": list(found["inputs"])},
    )  # fmt: skip
    draft.glue = _glue(draft, state, list(found["inputs"]))
    draft.baseline = _baseline(draft, state, list(found["inputs"]))
    return draft


def look(path: Path) -> str:
    """The text, after a look at what it defines; nothing is run."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    try:
        body = parse(text).body
    except SyntaxError as error:
        raise TaskError(f"{path}:{error.lineno}: {error.msg}. Correct the syntax.") from None
    names: dict[str, ast.AST] = {n.name: n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for name, kind in _WANTED.items():
        if not isinstance(names.get(name), kind):
            what = f"class {name}" if kind is ast.ClassDef else f"function {name}()"
            raise TaskError(
                f"{path}: not a KernelBench file: no {what} (it defines {listed(names)}).{suggest(name, names)}"
            )
    model = names["Model"]
    methods = [f for f in ast.iter_child_nodes(model) if isinstance(f, ast.FunctionDef)]
    forward = next((f for f in methods if f.name == "forward"), None)
    if forward is None:
        raise TaskError(f"{path}:{getattr(model, 'lineno', 1)}: Model has no forward(). Add it.")
    if forward.args.vararg or forward.args.kwarg:
        raise TaskError(f"{path}:{forward.lineno}: forward() takes *args or **kwargs: inputs need names of their own.")
    for name in _OURS:
        if name in names:
            line = getattr(names[name], "lineno", 1)
            raise TaskError(f"{path}:{line}: {name!r} is a name that K-Search needs for itself here. Rename it.")
    return text


def _given(side: Side) -> dict[str, Any] | None:
    """Shapes written in the side file, where it has both [inputs] and [outputs]: then nothing is run."""
    if not {"inputs", "outputs"} <= set(side.tables):
        return None
    state = {k: v for k, v in side.tables["inputs"].items() if "." in k or v.get("weight")}
    plain = {k: v for k, v in side.tables["inputs"].items() if k not in state}
    outputs = list(side.tables["outputs"].values())
    for key in ("inputs", "outputs"):
        del side.tables[key]
    return {"inputs": plain, "state": state, "outputs": outputs}


def _probed(path: Path, side: Side, device: str) -> dict[str, Any]:
    if importlib.util.find_spec("torch") is None:
        raise TorchMissing(
            f"{path}: which shapes go in and come out is known only by running it, and torch is not installed. "
            f"`pip install torch`, or write [inputs] and [outputs] into {side.path}."
        )
    return ask({"format": "kernelbench", "file": str(path.resolve()), "device": device}, path)


def _axes(text: str) -> dict[str, int]:
    """Whole numbers that the module names: `batch_size = 16`."""
    found = {}
    for node in parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Constant) and type(value.value) is int and value.value >= 1:
                found[node.targets[0].id] = value.value
    return found


def _dims(shape: list[Any], axes: Mapping[str, int]) -> list[str | int]:
    """A size that exactly one axis has is called by its name."""
    named = []
    for size in shape:
        close = [a for a, v in axes.items() if v == size]
        named.append(close[0] if len(close) == 1 and size > 1 else size)
    return named


def _free(name: str, taken: set[str]) -> str:
    name = name if name.isidentifier() else f"p_{name}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _check(path: Path, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    if not inputs or not outputs:
        raise TaskError(f"{path}: {'get_inputs()' if not inputs else 'forward()'} gives no tensor.")
    for tensor in (*inputs, *outputs):
        if tensor.dtype not in DTYPE_BYTES:
            raise TaskError(f"{path}: {tensor.name} is {tensor.dtype}, which is not supported: {listed(DTYPE_BYTES)}.")
        if 0 in tensor.shape:
            raise TaskError(f"{path}: {tensor.name} is empty: shape {tensor.shape}.")


def _about(path: Path, text: str) -> str:
    doc = next(
        (ast.get_docstring(n) for n in parse(text).body if isinstance(n, ast.ClassDef) and n.name == "Model"), None
    )
    return doc or f"What Model in {path.name} computes."


def _common(draft: Draft, state: Mapping[str, str], arguments: list[str]) -> str:
    kinds = {t.name: t.dtype for t in draft.inputs}
    return f"""\
DEVICE = {draft.device!r}
ARGUMENTS = { {n: kinds[n] for n in arguments}!r}
STATE = { {k: (n, kinds[n]) for k, n in state.items()}!r}
OUTPUTS = {[t.name for t in draft.outputs]!r}
_kept = {{}}


def _once():
    if not _kept:
        with bridge.placed(DEVICE):
            _kept["model"], _kept["data"] = SOURCEModel(*SOURCEget_init_inputs()), SOURCEget_inputs()
    return _kept["model"], _kept["data"]


def _forward(given):
    model, data = _once()
    tensors = [bridge.inward(given[name], dtype) for name, dtype in ARGUMENTS.items()]
    state = {{key: bridge.inward(given[name], dtype) for key, (name, dtype) in STATE.items()}}
    with bridge.placed(DEVICE):
        data = [tensors.pop(0) if isinstance(value, torch.Tensor) else value for value in data]
        return [value for _, value in bridge.leaves(torch.func.functional_call(model, state, tuple(data)))]
"""


def _glue(draft: Draft, state: Mapping[str, str], arguments: list[str]) -> str:
    common = _common(draft, state, arguments).replace("SOURCE", "")
    return f"""\
import ksearch_bridge as bridge
import torch

{common}

def inputs(axes, rng):
    with bridge.placed(DEVICE):
        torch.manual_seed(bridge.seed_of(rng))
        data = [value for value in get_inputs() if isinstance(value, torch.Tensor)]
        state = bridge.weights(Model(*get_init_inputs()), list(STATE)) if STATE else []
    names = [*ARGUMENTS, *(name for name, _ in STATE.values())]
    return {{name: bridge.outward(value, DEVICE) for name, value in zip(names, [*data, *state], strict=True)}}


def reference(inputs, axes):
    return {{name: bridge.outward(value, DEVICE) for name, value in zip(OUTPUTS, _forward(inputs), strict=True)}}
"""


def _baseline(draft: Draft, state: Mapping[str, str], arguments: list[str]) -> str:
    names = ", ".join(t.name for t in draft.inputs)
    given = ", ".join(f"{t.name}={t.name}" for t in draft.inputs)
    return f'''\
"""The model of the file itself, called as a program."""

import {BRIDGE.removesuffix(".py")} as bridge
import {ORIGINAL.removesuffix(".py")} as original
import torch

torch.set_num_threads(1)
{_common(draft, state, arguments).replace("SOURCE", "original.")}

def run({names}):
    found = tuple(bridge.outward(value, DEVICE) for value in _forward(dict({given})))
    return found if len(found) > 1 else found[0]
'''
