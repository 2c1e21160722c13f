"""FlashInfer-Bench: `definitions/<op_type>/<name>.json`, `workloads/<op_type>/<name>.jsonl`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ksearch.definition import DTYPE_BYTES
from ksearch.errors import TaskError
from ksearch.syntax import parse
from ksearch.tasks.fields import listed, suggest
from ksearch.tasks.foreign.draft import BRIDGE, Draft, Tensor, bytes_formula, plain_name
from ksearch.tasks.foreign.flashinfer_sizes import read_workloads
from ksearch.tasks.foreign.json_lines import Json
from ksearch.tasks.foreign.recipes import gathered, recipe_for
from ksearch.tasks.foreign.side import Side

_SUM = re.compile(r"\s*(\w+)\s*==\s*(\w+)\s*([+-])\s*(\d+)\s*")
_TOTAL = re.compile(r"\s*(\w+)\s*==\s*(\w+)\[-1\]\.item\(\)\s*")


def is_data_set(path: Path) -> bool:
    return (path / "definitions").is_dir() or any(_looks_like_definition(p) for p in sorted(path.glob("*.json"))[:3])


def _looks_like_definition(path: Path) -> bool:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and {"axes", "inputs", "outputs", "reference"} <= set(data)


def definitions(path: Path) -> list[Path]:
    """All definitions of a data set, or of a folder inside its `definitions`."""
    top = path / "definitions" if (path / "definitions").is_dir() else path
    return sorted(p for p in top.rglob("*.json"))


def find_definition(path: Path, label: str) -> Path:
    found = {p.stem: p for p in definitions(path)}
    if label in found:
        return found[label]
    if not label and len(found) == 1:
        return next(iter(found.values()))
    if not label:
        some = listed(sorted(found)[:3])
        raise TaskError(f"{path}: {len(found)} definitions. Name one, as {path}:NAME or by its file: {some}, ...")
    raise TaskError(f"{path}: no definition {label!r} among {len(found)}.{suggest(label, found)}")


def workloads_path(definition: Path) -> Path:
    for top in definition.parents:
        if top.name == "definitions":
            return top.parent / "workloads" / definition.parent.relative_to(top) / f"{definition.stem}.jsonl"
    return definition.with_suffix(".jsonl")


def read(path: Path, side: Side, device: str) -> Draft:
    """A definition and the workloads that belong to it, as a draft of a task.

    Raises:
        TaskError: a field is missing, or says what cannot be run here; file, line and field.
    """
    source = Json(path)
    name = source.take("name", kind=str, what="a text")
    axes, constants = _axes(source)
    formulas = _formulas(source, axes)
    totals = {m[2]: m[1] for c in source.data.get("constraints") or () if (m := _TOTAL.fullmatch(c))}
    original = source.take("reference", kind=str, what="the text of a Python module with run()")
    parameters, optional = _parameters(source, original)
    op_type = source.data.get("op_type") or ""
    about = {"op_type": op_type, "totals": totals, "axes": axes, "constants": constants}
    inputs, notes = _inputs(source, side, formulas, about | {"values": _scalar_values(source)}, parameters, optional)
    names = source.take("outputs", kind=dict, what="an object of tensors")
    outputs = [_tensor(source, "outputs", label, {**axes, **constants}, formulas) for label in names]
    open_axes = [a for a in axes if a not in formulas]
    bounds = _bounds(open_axes, original)
    sizes = read_workloads(
        workloads_path(path), open_axes, formulas, side, [*inputs, *outputs], constants, device, bounds
    )
    draft = Draft(
        source=path, format="flashinfer-bench", name=plain_name(name), title=name,
        description=source.data.get("description") or name, device=device, axes=sizes.domain, inputs=inputs,
        outputs=outputs, workloads=sizes.workloads, original=original, glue="", baseline="", constants=constants,
        constraints=bounds, notes=[*notes, *sizes.notes, *_made_up(inputs)],
    )  # fmt: skip
    draft.floor = _floor(draft, op_type)
    everything = [*source.data["inputs"]]
    draft.glue, draft.baseline = glue(draft, parameters), baseline(draft)
    draft.details = {"definition": name, "inputs": everything, "outputs": [*names], "axes": _kinds(source)}
    return draft


def _inputs(
    source: Json,
    side: Side,
    formulas: Mapping[str, str],
    about: Mapping[str, Any],
    parameters: list[str],
    optional: list[str],
) -> tuple[list[Tensor], list[str]]:
    inputs, notes = [], []
    for label in source.take("inputs", kind=dict, what="an object of tensors"):
        tensor = _tensor(source, "inputs", label, {**about["axes"], **about["constants"]}, formulas)
        if label not in parameters or label in optional:
            notes.append(f"Input {label} is optional and is left out.")
            continue
        recipe = recipe_for(tensor, about, side.own.get("ranges", {}))
        if recipe is None:
            fix = f"Say which values it takes in {side.path.name}: [ranges] {label} = [low, high]"
            source.fail(("inputs", label), f"it is not known which values {tensor.dtype} {label} may hold", fix)
        tensor.recipe = recipe
        inputs.append(tensor)
    return inputs, notes


def _kinds(source: Json) -> dict[str, Any]:
    return {k: a.get("value") for k, a in source.data["axes"].items()}


def _axes(source: Json) -> tuple[dict[str, None], dict[str, int | float]]:
    axes: dict[str, None] = {}
    constants: dict[str, int | float] = {}
    for name, entry in source.take("axes", kind=dict, what="an object of axes").items():
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind == "const":
            constants[name] = source.take("axes", name, "value", kind=int, what="a whole number")
        elif kind == "var":
            axes[name] = None
        else:
            source.fail(("axes", name, "type"), f"{kind!r} is not known", "Use 'const' or 'var'.")
    if not axes:
        source.fail(("axes",), "no axis is of type 'var'", "At least one size has to vary between workloads.")
    return axes, constants


def _formulas(source: Json, axes: Mapping[str, None]) -> dict[str, str]:
    """Axes that follow from others: `len_indptr == batch_size + 1`."""
    found = {}
    for text in source.data.get("constraints") or ():
        match = _SUM.fullmatch(text)
        if match and match[1] in axes and match[2] in axes:
            found[match[1]] = f"{match[2]} {match[3]} {match[4]}"
    if "len_indptr" in axes and "batch_size" in axes:
        found.setdefault("len_indptr", "batch_size + 1")
    return found


def _bounds(axes: list[str], original: str) -> list[str]:
    """Under a causal mask that is aligned to the last key, queries before the first key see nothing at all."""
    if "total_q" not in axes or not ("causal" in original or "delta" in original):
        return []
    pages = "num_kv_indices" if "num_kv_indices" in axes else "total_kv" if "total_kv" in axes else ""
    return [f"{pages} - total_q"] if pages else []


def _parameters(source: Json, original: str) -> tuple[list[str], list[str]]:
    """Of `run`: all of them in order, and those that may be left out."""
    try:
        tree = parse(original)
    except SyntaxError as error:
        source.fail(("reference",), f"line {error.lineno} of the code: {error.msg}", "Correct the syntax.")
    run = next((f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "run"), None)
    if run is None:
        source.fail(("reference",), "defines no function run()", "Name the function `run`.")
    names = [a.arg for a in run.args.args]
    for name in names:
        if name not in source.take("inputs", kind=dict, what="an object of tensors"):
            source.fail(
                ("reference",), f"run() takes {name!r}, which is no input", f"Inputs: {listed(source.data['inputs'])}."
            )
    optional = names[len(names) - len(run.args.defaults) :] if run.args.defaults else []
    return names, [n for n in optional if source.data["inputs"][n].get("optional")]


def _tensor(source: Json, part: str, name: str, sizes: Mapping[str, Any], formulas: Mapping[str, str]) -> Tensor:
    dtype = source.take(part, name, "dtype", kind=str, what="the name of a type")
    if dtype not in DTYPE_BYTES:
        source.fail((part, name, "dtype"), f"{dtype!r} is not supported", f"Supported: {listed(DTYPE_BYTES)}.")
    shape = source.data[part][name].get("shape")
    for dim in shape or ():
        if dim not in sizes:
            source.fail((part, name, "shape"), f"{dim!r} is no axis", f"The axes are {listed(sizes)}.")
    return Tensor(name, dtype, [formulas.get(dim, dim) for dim in shape or ()])


def _scalar_values(source: Json) -> dict[str, list[Any]]:
    """What the workloads give for inputs of type scalar."""
    path = workloads_path(source.path)
    found: dict[str, list[Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            inputs = json.loads(line)["workload"]["inputs"]
        except (ValueError, KeyError, TypeError):
            continue  # read_workloads says which line it is
        for name, entry in inputs.items():
            if (
                isinstance(entry, dict)
                and entry.get("type") == "scalar"
                and entry.get("value") not in found.get(name, [])
            ):
                found.setdefault(name, []).append(entry.get("value"))
    return found


def _made_up(inputs: list[Tensor]) -> list[str]:
    made = [t.name for t in inputs if t.recipe[0] in ("indptr", "distinct", "padded", "integers", "multiple")]
    return [f"Made from the sizes, not read from stored tensors: {', '.join(made)}."] if made else []


def _floor(draft: Draft, op_type: str) -> dict[str, str]:
    """Inputs that are looked up by an index need not be read whole."""
    whole = [t for t in draft.inputs if not gathered(t)]
    operations = "2 * M * N * K" if op_type == "gemm" and {"N", "K"} <= set(draft.constants) else "0"
    return {"bytes_moved": bytes_formula([*draft.outputs, *whole], draft.device), "operations": operations}


def glue(draft: Draft, parameters: list[str]) -> str:
    """inputs() and reference() around the original run()."""
    wanted = [t for t in draft.inputs if t.name in parameters]
    recipes = "".join(f"    {t.name!r}: ({t.recipe!r}, {t.shape!r}, {t.dtype!r}),\n" for t in draft.inputs)
    return f"""\
import ksearch_bridge as bridge

DEVICE = {draft.device!r}
CONSTANTS = {draft.constants!r}
INPUTS = {{
{recipes}}}
ARGUMENTS = {[t.name for t in sorted(wanted, key=lambda t: parameters.index(t.name))]!r}
OUTPUTS = {[t.name for t in draft.outputs]!r}


def inputs(axes, rng):
    sizes = {{**CONSTANTS, **axes}}
    draw = bridge.Draw(sizes, bridge.seed_of(rng), DEVICE)
    made = {{}}
    for name, (recipe, shape, dtype) in INPUTS.items():
        made[name] = draw(recipe, tuple(draw.size(d) for d in shape), dtype)
    return {{name: bridge.outward(value, DEVICE) for name, value in made.items()}}


def reference(inputs, axes):
    given = {{name: bridge.inward(inputs[name], INPUTS[name][2]) for name in ARGUMENTS}}
    with bridge.placed(DEVICE):
        found = run(**{{k: v.item() if not INPUTS[k][1] else v for k, v in given.items()}})
    found = found if isinstance(found, tuple | list) else (found,)
    return {{name: bridge.outward(value, DEVICE) for name, value in zip(OUTPUTS, found, strict=True)}}
"""


def baseline(draft: Draft) -> str:
    names = [t.name for t in draft.inputs]
    kinds = {t.name: t.dtype for t in draft.inputs}
    scalars = [t.name for t in draft.inputs if not t.shape]
    return f'''\
"""The code of the definition itself, called as a program."""

import {BRIDGE.removesuffix(".py")} as bridge
import original
import torch

torch.set_num_threads(1)
TYPES = {kinds!r}
SCALARS = {scalars!r}


def run({", ".join(names)}):
    given = dict({", ".join(f"{n}={n}" for n in names)})
    given = {{name: bridge.inward(value, TYPES[name]) for name, value in given.items()}}
    with bridge.placed({draft.device!r}):
        found = original.run(**{{k: v.item() if k in SCALARS else v for k, v in given.items()}})
    found = tuple(found) if isinstance(found, tuple | list) else (found,)
    found = tuple(bridge.outward(value, {draft.device!r}) for value in found)
    return found if len(found) > 1 else found[0]
'''
