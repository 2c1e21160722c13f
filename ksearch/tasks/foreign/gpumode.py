"""GPU MODE: a folder with `task.yml`, `reference.py` and the files that these name."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ksearch.definition import DTYPE_BYTES
from ksearch.errors import TaskError, TorchMissing
from ksearch.syntax import parse
from ksearch.tasks.fields import listed, suggest
from ksearch.tasks.foreign import gpumode_code as code
from ksearch.tasks.foreign.draft import Draft, Tensor, plain_name
from ksearch.tasks.foreign.fitting import fit_shape, within
from ksearch.tasks.foreign.probe import ask
from ksearch.tasks.foreign.side import Side
from ksearch.tasks.foreign.yaml_lines import Yaml

_PROBED = 6  # cases that are run to find the shapes, the smallest ones
_DEFAULTS = {"rtol": 1e-5, "atol": 1e-8}  # of the field's make_match_reference
Cases = list[dict[str, Any]]


def is_problem(path: Path) -> bool:
    return (path / "task.yml").is_file()


def listed_files(folder: Path) -> list[Path]:
    """The files outside the folder that `task.yml` names: `../utils.py`."""
    names = [e.get("source", "") for e in Yaml(folder / "task.yml").data.get("files") or () if isinstance(e, dict)]
    paths = [folder / str(name) for name in names if not str(name).startswith("@")]
    return [p for p in paths if p.is_file() and p.parent.resolve() != folder.resolve()]


def read(folder: Path, side: Side, device: str) -> Draft:
    """Raises:
    TaskError: with file, line and field where there are any.
    TorchMissing: its shapes can be found out only by running it.
    """
    source = Yaml(folder / "task.yml")
    original = _original(folder)
    files = _files(source, folder)
    tests, timed = _cases(source)
    codes = _codes([*tests, *timed])
    rows = _rows(tests, timed, codes)
    axes = {k: sorted({axes[k] for _, axes, _ in rows}) for k in rows[0][1]}
    shapes = _given(side) or _shapes(folder, side, device, rows, codes, original, axes, files)
    inputs, outputs, numbers = shapes
    for tensor in (*inputs, *outputs):
        if tensor.dtype not in DTYPE_BYTES:
            raise TaskError(
                f"{folder}: {tensor.name} is {tensor.dtype}, which is not supported: {listed(DTYPE_BYTES)}."
            )
    fits = within(rows, [*inputs, *outputs], device, folder, side)
    notes = [f"{axis} stands for {', '.join(f'{n}: {v!r}' for n, v in enumerate(codes[axis], 1))}." for axis in codes]
    if left := len(rows) - len(fits):
        notes.append(f"{left} of {len(rows)} sizes are left out: too large for a CPU.")
    limits, own = _tolerance(original)
    notes += [own] if own else []
    draft = Draft(
        source=folder, format="gpu-mode", name=plain_name(folder.resolve().name), title=folder.resolve().name,
        description=str(source.data.get("description") or folder.name), device=device,
        axes={a: {"values": v} for a, v in axes.items()}, inputs=inputs, outputs=outputs,
        workloads=[{"name": n, "axes": a} | ({} if t else {"timed": False}) for n, a, t in fits],
        original=original, glue="", baseline="", notes=notes, extra=files,
        tolerance={t.dtype: limits for t in outputs if t.dtype.startswith(("float", "bfloat"))},
        details={"codes": codes, "numbers": numbers},
    )  # fmt: skip
    common = code.common(draft, codes, numbers)
    draft.glue, draft.baseline = code.glue(common), code.baseline(draft, common)
    return draft


def _original(folder: Path) -> str:
    path = folder / "reference.py"
    try:
        text = path.read_text(encoding="utf-8")
        body = parse(text).body
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}. A GPU MODE problem needs it.") from None
    except SyntaxError as error:
        raise TaskError(f"{path}:{error.lineno}: {error.msg}. Correct the syntax.") from None
    names = [n.name for n in body if isinstance(n, ast.FunctionDef)]
    for name in ("generate_input", "ref_kernel"):
        if name not in names:
            raise TaskError(f"{path}: no function {name}() (it defines {listed(names)}).{suggest(name, names)}")
    return text


def _files(source: Yaml, folder: Path) -> dict[str, str]:
    """Modules that the reference may import, by the name they have beside it."""
    found = {}
    entries = source.data.get("files") or []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not {"name", "source"} <= set(entry):
            source.fail(("files", number), f"must be a mapping of name and source, got {entry!r}")
        name, place = str(entry["name"]), str(entry["source"])
        if place.startswith("@") or not name.endswith(".py") or name in ("reference.py", "submission.py", "eval.py"):
            continue
        path = folder / place
        if not path.is_file():
            source.fail(("files", number, "source"), f"no file {path}", "Put it there, or take the entry out.")
        found[name] = path.read_text(encoding="utf-8")
    if source.data.get("lang", "py") != "py":
        source.fail(("lang",), f"{source.data['lang']!r} is not supported", "Problems in Python ('py') are.")
    if source.data.get("multi_gpu"):
        source.fail(("multi_gpu",), "problems for several GPUs are not supported", "One GPU is measured.")
    return found


def _cases(source: Yaml) -> tuple[Cases, Cases]:
    found: list[Cases] = []
    for key in ("tests", "benchmarks"):
        entries = source.data.get(key) or []
        if not isinstance(entries, list):
            source.fail((key,), f"must be a list, got {entries!r}")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict):
                source.fail((key, number), f"must be a mapping of arguments, got {entry!r}")
            for name, value in entry.items():
                if not isinstance(value, int | str | bool):
                    fix = "Whole numbers, texts, true and false can be an axis."
                    source.fail((key, number, name), f"{value!r} is not supported", fix)
            if set(entry) != set(found[0][0] if found and found[0] else entries[0]):
                source.fail(
                    (key, number), "its arguments are not those of the first case", "Give each case all of them."
                )
        found.append(entries)
    if not found[0] and not found[1]:
        source.fail(("tests",), "no cases", "Add at least one under tests or benchmarks.")
    return found[0], found[1]


def _codes(cases: Cases) -> dict[str, list[Any]]:
    """Arguments that are no sizes: their values, numbered from 1 to make an axis of them."""
    codes: dict[str, list[Any]] = {}
    for name in cases[0]:
        values = [case[name] for case in cases]
        if name != "seed" and any(not isinstance(v, int) or isinstance(v, bool) or v < 1 for v in values):
            codes[name] = list(dict.fromkeys(values))
    return codes


def _rows(tests: Cases, timed: Cases, codes: Mapping[str, list[Any]]) -> list[tuple[str, dict[str, int], bool]]:
    """(name, axes, timed) of every case; the seed is K-Search's own, so cases that differ in it alone are one."""
    rows: dict[tuple[int, ...], tuple[str, dict[str, int], bool]] = {}
    for label, cases in (("benchmark", timed), ("test", tests)):
        for number, case in enumerate(cases):
            axes = {k: codes[k].index(v) + 1 if k in codes else v for k, v in case.items() if k != "seed"}
            axes = axes or {"problem": 1}
            rows.setdefault(tuple(axes.values()), (f"{label}_{number}", axes, label == "benchmark" or not timed))
    return list(rows.values())


def _given(side: Side) -> tuple[list[Tensor], list[Tensor], list[str]] | None:
    """[inputs] and [outputs] of the side file: then nothing is run."""
    if not {"inputs", "outputs"} <= set(side.tables):
        return None
    found = [
        [Tensor(n, t["dtype"], t["shape"], mutable=t.get("mutable", False)) for n, t in side.tables.pop(key).items()]
        for key in ("inputs", "outputs")
    ]
    return found[0], found[1], []


def _shapes(
    folder: Path,
    side: Side,
    device: str,
    rows: Any,
    codes: Mapping[str, list[Any]],
    original: str,
    axes: Mapping[str, Any],
    files: Mapping[str, str],
) -> tuple[list[Tensor], list[Tensor], list[str]]:
    if importlib.util.find_spec("torch") is None:
        raise TorchMissing(
            f"{folder}: which shapes go in and come out is known only by running reference.py, and torch is not "
            f"installed. `pip install torch`, or write [inputs] and [outputs] into {side.path}."
        )
    probed = sorted(rows, key=lambda r: _product(r[1], codes))[:_PROBED]
    with_seed = "seed" in _arguments(original)
    orders = [arguments(a, codes) | ({"seed": 1} if with_seed else {}) for _, a, _ in probed]
    file = str((folder / "reference.py").resolve())
    order = {"format": "gpu-mode", "file": file, "device": device, "cases": orders, "extra": dict(files)}
    answer = ask(order, folder)
    found, numbers = answer["cases"], answer["numbers"]
    sizes = [a for _, a, _ in probed]
    names = _names(original, [path for path, _ in found[0]["inputs"]], set(axes))
    inputs = []
    for place, name in enumerate(names):
        dims = [case["inputs"][place][1]["shape"] for case in found]
        shape = fit_shape(f"{folder}: {name}", dims, sizes, side)
        changed = any(case["changed"][place] for case in found)
        inputs.append(Tensor(name, found[0]["inputs"][place][1]["dtype"], shape, mutable=changed))
    outputs = []
    for place, about in enumerate(found[0]["outputs"]):
        name = "y" if len(found[0]["outputs"]) == 1 else f"y{place}"
        while name in {*axes, *names}:
            name += "_"
        dims = [case["outputs"][place]["shape"] for case in found]
        outputs.append(Tensor(name, about["dtype"], fit_shape(f"{folder}: {name}", dims, sizes, side)))
    return inputs, outputs, numbers


def _product(axes: Mapping[str, int], codes: Mapping[str, Any]) -> int:
    total = 1
    for name, value in axes.items():
        total *= 1 if name in codes else value
    return total


def arguments(axes: Mapping[str, int], codes: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {k: codes[k][v - 1] if k in codes else v for k, v in axes.items() if k != "problem"}


def _arguments(original: str) -> list[str]:
    functions = {n.name: n for n in parse(original).body if isinstance(n, ast.FunctionDef)}
    return [a.arg for a in functions["generate_input"].args.args + functions["generate_input"].args.kwonlyargs]


def _names(original: str, paths: list[str], taken: set[str]) -> list[str]:
    """As generate_input() calls them where it returns plain names, else by their place."""
    function = next(n for n in parse(original).body if isinstance(n, ast.FunctionDef) and n.name == "generate_input")
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    value = returned[-1] if returned else None
    entries: list[ast.expr] = list(value.elts) if isinstance(value, ast.Tuple | ast.List) else [value] if value else []
    words = [e.id if isinstance(e, ast.Name) else "" for e in entries]
    names: list[str] = []
    for path in paths:
        head, _, rest = path.partition("_")
        own = words[int(head)] if head.isdigit() and int(head) < len(words) else words[0] if not path and words else ""
        name = "_".join(p for p in (own if not rest else "", rest.replace(".", "_")) if p) or (
            f"x{path}" if path else "x"
        )
        name = name if name.isidentifier() else f"x_{name}"
        while name in taken or name in names:
            name += "_"
        names.append(name)
    return names


def _tolerance(original: str) -> tuple[tuple[float, float, float], str]:
    """Limits of `make_match_reference(ref_kernel, rtol=..., atol=...)`, and a note where there is another check."""
    limits = dict(_DEFAULTS)
    calls = [n for n in ast.walk(parse(original)) if isinstance(n, ast.Call)]
    match = next((c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "make_match_reference"), None)
    if match is None:
        wide = (1e-2, 1e-2, 1e-2)
        return wide, "Its own check_implementation() is not used: outputs are compared value by value."
    for keyword in match.keywords:
        if keyword.arg in limits and isinstance(keyword.value, ast.Constant | ast.UnaryOp):
            limits[keyword.arg] = float(ast.literal_eval(keyword.value))
    return (limits["rtol"], limits["atol"], max(limits["rtol"], 1e-6)), ""
