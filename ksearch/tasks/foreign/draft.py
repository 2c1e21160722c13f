"""What a foreign format says, as the tables of a `task.toml`, and the writing of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksearch.definition import CUDA_ONLY, DTYPE_BYTES
from ksearch.errors import TaskError

TEMPLATES = Path(__file__).parents[1] / "template_files"
BRIDGE = "ksearch_bridge.py"
ORIGINAL = "original.py"
MOST_ARGUMENTS = 48  # of a call on a CPU
TOO_MANY = "Too many arrays"
ABOUT = "source.json"  # where the task was made from
LANGUAGES = {"cpu": ["cpp", "python"], "cuda": ["triton", "cuda", "python"]}
LIMITS = {"smoke_s": 60, "check_s": 300, "time_s": 300, "memory_bytes": 8 << 30}  # torch in the runner; slow references
TOLERANCES = {
    "float64": (1e-6, 1e-6, 1e-6), "float32": (1e-3, 1e-3, 1e-3), "float16": (1e-2, 1e-2, 5e-3),
    "bfloat16": (1.6e-2, 1e-2, 1e-2), "float8_e4m3fn": (0.13, 1e-2, 5e-2), "float8_e5m2": (0.25, 1e-2, 0.1),
}  # fmt: skip
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Tensor:
    """An input or output. `dtype` is the original code's; NumPy's counterpart on a CPU is `held`."""

    name: str
    dtype: str
    shape: list[str | int]
    recipe: tuple[Any, ...] = ()
    mutable: bool = False

    def held(self, device: str) -> str:
        return "float32" if device == "cpu" and self.dtype in CUDA_ONLY else self.dtype


@dataclass
class Draft:
    """A task in the making."""

    source: Path  # the file or folder that it was read from
    format: str  # flashinfer-bench, gpu-mode, kernelbench
    name: str
    title: str
    description: str
    device: str
    axes: dict[str, dict[str, Any]]
    inputs: list[Tensor]
    outputs: list[Tensor]
    workloads: list[dict[str, Any]]
    original: str  # text of the reference code, as it was found
    glue: str  # what makes it inputs() and reference()
    baseline: str  # a Python program that calls the original
    constants: dict[str, int | float] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    tolerance: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    floor: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was made up or left out
    extra: dict[str, str] = field(default_factory=dict)  # further files of the original, by name
    details: dict[str, Any] = field(default_factory=dict)  # for exporters


def plain_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "_", text.lower()).strip("_-") or "task"


def files_of(draft: Draft, side: Mapping[str, Any], beside: Mapping[str, str]) -> dict[str, str]:
    """Everything that goes into the task folder, by name; `beside` are files that the side file names."""
    count = len(draft.inputs) + len(draft.outputs) + len(draft.axes)
    if draft.device == "cpu" and count > MOST_ARGUMENTS:
        text = f"{TOO_MANY} for a CPU: {len(draft.inputs)} inputs; with outputs and axes {count}, of at most"
        draft.notes.append(f"{text} {MOST_ARGUMENTS}.")
    bridge = (TEMPLATES / BRIDGE).read_text(encoding="utf-8")
    mark = f"# --- up to here {_origin_name(draft)} as it was found; K-Search's own part begins ---"
    reference = f"{draft.original.rstrip()}\n\n\n{mark}\n{draft.glue}"
    tensors = [{"name": t.name, "dtype": t.dtype} for t in (*draft.inputs, *draft.outputs)]
    about = {"format": draft.format, "source": str(draft.source.resolve()), "notes": draft.notes, "tensors": tensors}
    about |= draft.details
    files = {
        "task.toml": toml(_tables(draft, side)),
        "reference.py": reference,
        ORIGINAL: draft.original,
        BRIDGE: bridge,
        "baseline.py": draft.baseline,
        ABOUT: json.dumps(about, indent=1, ensure_ascii=False) + "\n",
    }
    return files | draft.extra | dict(beside)


def _origin_name(draft: Draft) -> str:
    return f"the code of {draft.source.name}"


def _tables(draft: Draft, side: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "format": 1,
        "name": draft.name,
        "title": draft.title,
        "description": _prose(draft),
        "device": draft.device,
        "languages": LANGUAGES[draft.device],
        "constraints": draft.constraints,
        "axes": draft.axes,
        "inputs": {t.name: _table(t, draft.device) for t in draft.inputs},
        "outputs": {t.name: _table(t, draft.device) for t in draft.outputs},
        "constants": draft.constants,
        "floor": draft.floor or _least(draft),
        "baseline": {"language": "python", "files": ["baseline.py", ORIGINAL, BRIDGE, *sorted(draft.extra)]},
        "limits": LIMITS,
        "workloads": draft.workloads,
    }
    made["tolerance"] = _tolerances(draft, side.get("tolerance", {}))
    for key, value in _for_device(side, draft.device).items():
        merged = isinstance(value, dict) and key in ("axes", "limits", "floor", "constants")
        made[key] = {**made.get(key, {}), **value} if merged else value
    return {k: v for k, v in made.items() if v not in ({}, [])}


def _for_device(side: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Programs in a language of the other device are left out: one side file serves both."""
    kept = {k: v for k, v in side.items() if k != "tolerance"}
    if kept.get("baseline", {}).get("language", LANGUAGES[device][0]) not in LANGUAGES[device]:
        del kept["baseline"]
    if "strong" in kept:
        kept["strong"] = {k: v for k, v in kept["strong"].items() if v.get("language") in LANGUAGES[device]}
    return kept


def _prose(draft: Draft) -> str:
    lines = [draft.description.strip(), f"Read from {draft.source.name} ({draft.format}); reference.py holds its code."]
    narrow = sorted({t.dtype for t in (*draft.inputs, *draft.outputs) if t.dtype != t.held(draft.device)})
    if narrow:
        lines.append(f"On this CPU, tensors of {', '.join(narrow)} are float32 arrays that hold values of that type.")
    if scalars := [t.name for t in draft.inputs if not t.shape]:
        lines.append(f"A scalar is an array without dimensions: {', '.join(scalars)}.")
    return "\n".join([*lines, *draft.notes])


def _table(tensor: Tensor, device: str) -> dict[str, Any]:
    made: dict[str, Any] = {"dtype": tensor.held(device), "shape": tensor.shape}
    return made | ({"mutable": True} if tensor.mutable else {})


def _tolerances(draft: Draft, given: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """By the dtype that the outputs are held in; where several share one, the widest. `given` is the side file's."""
    found: dict[str, tuple[float, float, float]] = {}
    dtypes = {t.dtype for t in draft.outputs}
    for dtype in given:
        if dtype not in dtypes:
            text = f"the side file's [tolerance.{dtype}]: no output of {draft.source.name} has this type"
            raise TaskError(f"{text}. Outputs have {', '.join(sorted(dtypes))}.")
    for tensor in (*draft.outputs, *(t for t in draft.inputs if t.mutable)):
        wide = draft.tolerance.get(tensor.dtype) or TOLERANCES.get(tensor.dtype, (0.0, 0.0, 0.0))
        own = given.get(tensor.dtype, {})
        wide = (own.get("rtol", wide[0]), own.get("atol", wide[1]), own.get("norm", wide[2]))
        held = tensor.held(draft.device)
        before = found.get(held, wide)
        found[held] = (max(before[0], wide[0]), max(before[1], wide[1]), max(before[2], wide[2]))
    return {dtype: dict(zip(("rtol", "atol", "norm"), limits, strict=True)) for dtype, limits in found.items()}


def _least(draft: Draft) -> dict[str, str]:
    """Nothing is known of what has to be read: the outputs have to be written."""
    return {"bytes_moved": bytes_formula(draft.outputs, draft.device), "operations": "0"}


def bytes_formula(tensors: list[Tensor], device: str) -> str:
    parts = []
    for tensor in tensors:
        factors = [f"({d})" if isinstance(d, str) and not d.isidentifier() else str(d) for d in tensor.shape]
        parts.append(" * ".join([str(DTYPE_BYTES[tensor.held(device)]), *factors]))
    return " + ".join(parts) or "1"


# --- TOML


def toml(tables: Mapping[str, Any]) -> str:
    """Scalars and lists first, then tables; what lies two deep is written inline."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in tables.items() if not isinstance(v, dict) and not _is_tables(v)]
    for key, value in tables.items():
        if _is_tables(value):
            for entry in value:
                lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v)}" for k, v in entry.items())]
        elif isinstance(value, dict):
            lines += ["", f"[{_key(key)}]", *(f"{_key(k)} = {_value(v)}" for k, v in value.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    return "[" + ", ".join(_value(v) for v in value) + "]"


def _text(value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if "\n" not in value:
        return quoted
    return '"""\n' + quoted[1:-1].replace("\\n", "\n") + '"""'
