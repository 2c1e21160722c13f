"""`task.toml`, format 1, to a `TaskSpec`. Programs and `reference.py` are looked at in `sources.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields

from ksearch.definition import CUDA_ONLY, DTYPE_BYTES, MEANS, AxisDomain, Floor, Limits, Tensor, Tolerance, Workload
from ksearch.expressions import ExpressionError, evaluate, names_in
from ksearch.tasks.fields import Section, listed, suggest

FORMAT = 1
LANGUAGES_OF = {"cpu": ("cpp", "python"), "cuda": ("triton", "cuda", "python")}
LANGUAGES = ("cpp", "python", "cuda", "triton")
PRECISIONS = ("tolerance", "float64", "float32", "tf32", "bfloat16", "float16")
RESERVED = ("min", "max", "ceil", "floor", "sqrt", "log2")  # the functions of formulas

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def task_name(root: Section) -> str:
    name = root.text("name")
    if not _NAME.fullmatch(name):
        root.fail("name", f"{name!r} is no name", "Use small letters, digits, _ and -, such as 'row_softmax'.")
    return name


def check_version(root: Section) -> None:
    version = root.integer("format")
    if version != FORMAT:
        root.fail("format", f"{version} is not supported", f"This version of K-Search reads format {FORMAT}.")


def read_axes(root: Section) -> dict[str, AxisDomain]:
    """Axes in the order in which the entry point receives them, each with its domain."""
    table = root.table("axes")
    axes = {name: _domain(name, entry) for name, entry in table.children()}
    if not axes:
        table.fail("", "no axes", "Name at least one, such as: n = { min = 1, max = 4096 }")
    return axes


def _domain(name: str, entry: Section) -> AxisDomain:
    if not name.isidentifier() or name in RESERVED:
        entry.fail("", f"{name!r} cannot name an axis", "Use letters, digits and _, and no name of a function.")
    if entry.has("values"):
        values = entry.integers("values")
        if not values or min(values) < 1:
            entry.fail("values", f"{list(values)} holds no sizes", "List whole numbers of at least 1.")
        entry.finish()
        return AxisDomain(values=values)
    low, high, step = entry.integer("min", 1), entry.integer("max"), entry.integer("multiple_of", 1)
    entry.finish()
    try:
        return AxisDomain(min=low, max=high, multiple_of=step)
    except ValueError as error:
        entry.fail("", str(error), "Widen the range so that at least one multiple lies in it.")


def read_constants(root: Section, axes: Mapping[str, AxisDomain]) -> dict[str, int | float]:
    table = root.table("constants", optional=True)
    constants: dict[str, int | float] = {}
    for name in table.data:
        if not name.isidentifier() or name in RESERVED or name in axes:
            table.fail(name, f"{name!r} cannot name a constant", "Use an identifier that is no axis or function.")
        constants[name] = table.number(name)
    return constants


def read_tensors(root: Section, key: str, names: Mapping[str, object]) -> tuple[Tensor, ...]:
    table = root.table(key)
    tensors = []
    for name, entry in table.children():
        if not name.isidentifier():
            entry.fail("", f"{name!r} cannot name a tensor", "Use letters, digits and _.")
        dtype = entry.choice("dtype", DTYPE_BYTES)
        shape = entry.sizes("shape")
        for dim in shape:
            _check_dim(entry, dim, names)
        mutable = entry.flag("mutable", default=False) if key == "inputs" else False
        entry.finish()
        tensors.append(Tensor(name, dtype, shape, mutable))
    if not tensors:
        example = 'x = { dtype = "float32", shape = ["n"] }'
        table.fail("", f"no {key}", f"Name at least one, such as: {example}")
    return tuple(tensors)


def _check_dim(entry: Section, dim: str | int, names: Mapping[str, object]) -> None:
    if isinstance(dim, int):
        if dim < 1:
            entry.fail("shape", f"dimension {dim} is too small", "Use 1 or more.")
        return
    check_formula(entry, "shape", dim, names)


def check_formula(section: Section, key: str, formula: str, names: Mapping[str, object]) -> None:
    try:
        used = names_in(formula)
    except ExpressionError as error:
        section.fail(key, str(error), "Correct the formula.")
    for name in sorted(used - set(names)):
        section.fail(key, f"{name!r} in {formula!r} is no axis", f"The axes are {listed(names)}.{suggest(name, names)}")


def check_distinct(
    root: Section, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], axes: Mapping[str, AxisDomain]
) -> None:
    """One name, one thing: they are all parameters of the same function."""
    taken = dict.fromkeys(axes, "axis")
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for tensor in tensors:
            if tensor.name in taken:
                problem = f"the name is already that of an {taken[tensor.name]}"
                root.table(f"{kind}s").fail(tensor.name, problem, "Rename one of them.")
            taken[tensor.name] = kind


def check_device(
    root: Section, device: str, languages: tuple[str, ...], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> None:
    """Languages and dtypes that this device has."""
    known = LANGUAGES_OF[device]
    for language in languages:
        if language not in known:
            problem = f"{language!r} does not run on device {device!r}"
            root.fail("languages", problem, f"There: {listed(known)}. Or set device = {_other(device)!r}.")
    for kind, tensors in (("inputs", inputs), ("outputs", outputs)):
        for tensor in tensors:
            if device == "cpu" and tensor.dtype in CUDA_ONLY:
                fix = 'Set device = "cuda", or use another dtype.'
                root.table(kind).fail(tensor.name, f"NumPy has no {tensor.dtype}", fix)


def _other(device: str) -> str:
    return next(d for d in LANGUAGES_OF if d != device)


def read_tolerances(root: Section, outputs: tuple[Tensor, ...]) -> dict[str, Tolerance]:
    table = root.table("tolerance")
    tolerances = {dtype: _tolerance(dtype, entry) for dtype, entry in table.children()}
    used = {t.dtype for t in outputs}
    for dtype in sorted(used - set(tolerances)):
        names = listed(t.name for t in outputs if t.dtype == dtype)
        fix = f"Add [tolerance.{dtype}] with rtol, atol and norm."
        table.fail("", f"none for {dtype}, the dtype of output {names}", fix)
    for dtype in sorted(set(tolerances) - used):
        table.fail(dtype, "no output has this dtype", f"Outputs have {listed(sorted(used))}.{suggest(dtype, used)}")
    return tolerances


def _tolerance(dtype: str, entry: Section) -> Tolerance:
    exact = dtype in DTYPE_BYTES and not dtype.startswith(("float", "bfloat"))
    rtol, atol, norm = (entry.number(key) for key in ("rtol", "atol", "norm"))
    entry.finish()
    for key, value in (("rtol", rtol), ("atol", atol), ("norm", norm)):
        if value < 0:
            entry.fail(key, f"{value:g} is negative", "Give the largest error that is still right.")
        if key != "atol" and value >= 1:
            entry.fail(key, f"{value:g} would accept zeros", "Use less than 1; fp32 needs about 1e-5.")
    if not exact and (norm == 0 or rtol == atol == 0):
        key = "norm" if norm == 0 else "rtol"
        fix = "Give the error that a correct kernel may have, such as 1e-5; zero is for integers only."
        entry.fail(key, f"zero tolerance for {dtype} would refuse every correct kernel", fix)
    return Tolerance(rtol=rtol, atol=atol, norm=norm)


def read_floor(root: Section, names: Mapping[str, object]) -> Floor:
    table = root.table("floor")
    formulas = {key: table.text(key) for key in ("bytes_moved", "operations")}
    table.finish()
    for key, formula in formulas.items():
        check_formula(table, key, formula, names)
    return Floor(**formulas)


def read_constraints(root: Section, names: Mapping[str, object]) -> tuple[str, ...]:
    formulas = root.texts("constraints", ())
    for formula in formulas:
        check_formula(root, "constraints", formula, names)
    return formulas


def read_workloads(root: Section, axes: Mapping[str, AxisDomain]) -> tuple[Workload, ...]:
    entries = root.tables("workloads")
    workloads: list[Workload] = []
    for entry in entries:
        name = entry.text("name")
        values = _workload_axes(entry, axes)
        timed = entry.flag("timed", default=True)
        entry.finish()
        for other in workloads:
            if other.name == name:
                entry.fail("name", f"a second workload is named {name!r}", "Rename one of them.")
            if dict(other.axes) == values:
                entry.fail("axes", f"the same sizes as workload {other.name!r}", "Remove one, or change its sizes.")
        workloads.append(Workload(name, values, timed))
    if not any(w.timed for w in workloads):
        root.fail("workloads", "no workload is timed", "Remove timed = false from those that matter for speed.")
    return tuple(workloads)


def _workload_axes(entry: Section, axes: Mapping[str, AxisDomain]) -> dict[str, int]:
    table = entry.table("axes")
    for name in table.data:
        if name not in axes:
            table.fail(name, f"{name!r} is no axis", f"The axes are {listed(axes)}.{suggest(name, axes)}")
    values = {}
    for name, domain in axes.items():
        value = values[name] = table.integer(name)
        if value not in domain:
            fix = f"Change the size, or the domain under [axes]: {name} takes {_spelled(domain)}."
            table.fail(name, f"{value} lies outside the task's domain", fix)
    return values


def _spelled(domain: AxisDomain) -> str:
    if domain.values:
        return listed(domain.values)
    step = f" in multiples of {domain.multiple_of}" if domain.multiple_of > 1 else ""
    return f"{domain.min} to {domain.max}{step}"


def check_sizes(
    root: Section,
    tensors: tuple[Tensor, ...],
    floor: Floor,
    workloads: tuple[Workload, ...],
    constants: Mapping[str, int | float],
    constraints: tuple[str, ...] = (),
) -> None:
    """Every shape and floor has a sensible value for every workload."""
    for number, workload in enumerate(workloads):
        names = {**constants, **workload.axes}
        entry = root.tables("workloads")[number]
        for formula in constraints:
            if (value := evaluate(formula, names)) < 0:
                entry.fail("axes", f"{formula} is {value}", f"The task's constraints want 0 or more: {formula}.")
        for tensor in tensors:
            try:
                dims = tensor.dims(names)
            except ValueError as error:
                entry.fail("axes", str(error), f"Correct the shape of {tensor.name} or the sizes.")
            if 0 in dims:
                entry.fail("axes", f"{tensor.name} is empty: shape {dims}", "Every dimension must be 1 or more.")
        for key, least in (("bytes_moved", 1), ("operations", 0)):
            formula = getattr(floor, key)
            try:
                value = evaluate(formula, names)
            except ExpressionError as error:
                root.table("floor").fail(key, str(error), f"Correct the formula for workload {workload.name!r}.")
            if value < least:
                problem = f"{formula!r} is {value} for workload {workload.name!r}"
                root.table("floor").fail(key, problem, f"It must be at least {least}.")


def read_limits(root: Section) -> Limits:
    table = root.table("limits", optional=True)
    known = {f.name for f in fields(Limits)}
    values: dict[str, int | float] = {}
    for key in table.data:
        if key not in known:
            table.fail(key, "unknown limit", f"Known: {listed(sorted(known))}.{suggest(key, known)}")
        value = table.integer(key) if key.endswith("_bytes") else table.number(key)
        if value <= 0:
            table.fail(key, f"{value} is no limit", "Use a number above 0.")
        values[key] = value
    return Limits(**values)  # type: ignore[arg-type]


def read_mean(root: Section) -> str:
    return root.choice("mean", MEANS, "geometric")
