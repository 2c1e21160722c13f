"""The task in words: shapes, tolerances, workloads, and how the entry point is called in each language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ksearch.definition import C_TYPES, CUDA_TYPES, TaskSpec, Tensor
from ksearch.prompts.text import cell, clip, fenced, head, visible

_C_LIKE = ("cpp", "cuda", "c")
_ON_STREAM = (
    "Queue all work on `stream`, which runs in order; no synchronisation with the host is needed. Scratch memory: "
    "cudaMallocAsync and cudaFreeAsync on `stream`, in every call. It is built by nvcc for the GPU at hand."
)
_TORCH = (
    "Arguments are torch tensors on the GPU: contiguous, row-major, of exactly these dtypes. Return the outputs "
    "(several as a tuple, in their order): new contiguous tensors of exactly the declared dtypes and shapes, each in "
    "memory of its own. Or take the outputs as further parameters, in their order, fill them and return nothing. Work "
    "goes to the current stream. The first call at each size may compile; that is not timed."
)
_NAMES = {"cpp": "C++", "cuda": "CUDA C++", "c": "C", "python": "Python", "triton": "Triton"}


def language_name(language: str) -> str:
    return _NAMES.get(language, language)


def definition(task: TaskSpec, description_chars: int | None = None, workloads: int = 40) -> str:
    """Description, tensors, tolerances, workloads with their floors, domain."""
    description = task.description.strip()
    if description_chars is not None:
        description = head(description, description_chars)
    pieces = [
        fenced(description, "text") if description else "",
        "\n".join([*(_tensor("input", t) for t in task.inputs), *(_tensor("output", t) for t in task.outputs)]),
        _constants(task),
        _tolerances(task),
        _workloads(task, workloads),
        _domain(task),
    ]
    return "\n\n".join(p for p in pieces if p)


def _tensor(role: str, tensor: Tensor) -> str:
    shape = ", ".join(str(s) for s in tensor.shape)
    return f"- {role} {tensor.name}: {tensor.dtype}[{shape}]{', may be written to' if tensor.mutable else ''}"


def _constants(task: TaskSpec) -> str:
    return "Constants: " + ", ".join(f"{k} = {v}" for k, v in task.constants.items()) if task.constants else ""


def _tolerances(task: TaskSpec) -> str:
    used = {t.dtype for t in task.outputs}
    lines = [
        f"Tolerance ({dtype}): |got - expected| <= {t.atol:g} + {t.rtol:g} * |expected| for every element, and "
        f"||got - expected|| / ||expected|| <= {t.norm:g}."
        for dtype, t in task.tolerance.items()
        if dtype in used
    ]
    return "\n".join(lines)


def _workloads(task: TaskSpec, limit: int) -> str:
    lines = ["Workloads (with the bytes and operations that no program can avoid):"]
    for w in task.workloads[:limit]:
        axes = ", ".join(f"{k} = {v}" for k, v in w.axes.items())
        lines.append(f"- {cell(w.name)}: {axes}{_floor(task, w.axes) if w.timed else ' (checked, not timed)'}")
    if len(task.workloads) > limit:
        lines.append(f"- and {len(task.workloads) - limit} more")
    return "\n".join(lines)


def _floor(task: TaskSpec, axes: Mapping[str, int]) -> str:
    bytes_moved, operations = task.floor(task.names(axes))
    return f" ({bytes_moved / 1e6:.3g} MB, {operations / 1e6:.3g} Mop)" if bytes_moved or operations else ""


def _domain(task: TaskSpec) -> str:
    ranges = []
    for axis, d in task.domain.items():
        step = f" in steps of {d.multiple_of}" if d.multiple_of > 1 else ""
        listed = ", ".join(map(str, d.values))
        ranges.append(f"{axis} one of {listed}" if d.values else f"{axis} {d.min}..{d.max}{step}")
    ranges += [f"{formula} >= 0" for formula in task.constraints]
    return f"Domain (a new best is checked on other shapes from it): {'; '.join(ranges)}." if ranges else ""


def abi(task: TaskSpec, language: str) -> str:
    """How the evaluator calls the program."""
    if language in _C_LIKE:
        memory, more = ("device", f" {_ON_STREAM}") if language == "cuda" else ("host", "")
        return (
            f"{fenced(prototype(task, language), language)}\n\n"
            f"Tensors are contiguous and row-major, in {memory} memory; inputs first, then outputs, then the axes. "
            f"Buffers do not overlap; assume no alignment beyond the element's size.{more}"
        )
    if task.device == "cuda":
        return f"{fenced(python_signature(task), 'python')}\n\n{_TORCH}"
    return (
        f"{fenced(python_signature(task), 'python')}\n\n"
        "Arguments are NumPy arrays, inputs first, then outputs: contiguous, row-major, of exactly these dtypes. Write "
        "the results into the outputs in place (y[...] = ...). Sizes are in the arrays' shapes."
    )


def abis(task: TaskSpec, languages: Sequence[str]) -> str:
    """`abi` of several languages, each under its name; those that are called alike share one."""
    bodies: dict[str, list[str]] = {}
    for language in languages:
        bodies.setdefault(abi(task, language), []).append(language_name(language))
    if len(bodies) == 1:
        return next(iter(bodies))
    return "\n\n".join(f"In {' or '.join(names)}:\n\n{body}" for body, names in bodies.items())


def prototype(task: TaskSpec, language: str = "cpp") -> str:
    """extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols); in CUDA with the stream behind."""
    types = CUDA_TYPES if language == "cuda" else C_TYPES
    tensors = [f"{'' if t.mutable else 'const '}{types[t.dtype]}* {t.name}" for t in task.inputs]
    tensors += [f"{types[t.dtype]}* {t.name}" for t in task.outputs]
    axes = [f"int64_t {axis}" for axis in task.axes]
    stream = ["cudaStream_t stream"] if language == "cuda" else []
    return f'extern "C" void {task.entry_point}({", ".join([*tensors, *axes, *stream])});'


def python_signature(task: TaskSpec) -> str:
    if task.device == "cuda":
        made = ", ".join(t.name for t in task.outputs)
        return f"def {task.entry_point}({', '.join(t.name for t in task.inputs)}): ...  # returns {made}"
    return f"def {task.entry_point}({', '.join(t.name for t in (*task.inputs, *task.outputs))}) -> None: ..."


def short_definition(task: TaskSpec, language: str) -> str:
    """The least that a small model needs."""
    signature = abi_line(task, language)
    shapes = "; ".join(f"{t.name} is {t.dtype}[{', '.join(map(str, t.shape))}]" for t in (*task.inputs, *task.outputs))
    description = fenced(head(task.description.strip(), 2000), "text") if task.description.strip() else ""
    return "\n\n".join(p for p in (description, signature, f"Row-major: {shapes}.") if p)


def abi_line(task: TaskSpec, language: str) -> str:
    return fenced(prototype(task, language) if language in _C_LIKE else python_signature(task), language)


def forbidden(names: Sequence[str]) -> str:
    if not names:
        return "Libraries: only what the language brings along."
    return f"Not allowed here, directly or indirectly: {clip(visible(', '.join(names)), 400)}."


def threads(task: TaskSpec) -> str:
    if task.device == "cuda":
        return "One host thread, one GPU; other streams must be joined with the given one."
    return "One thread only: start no others." if task.threads == 1 else f"At most {task.threads} threads."


def mutable(task: TaskSpec) -> str:
    names = [t.name for t in task.inputs if t.mutable]
    return f" other than {', '.join(names)}" if names else ""


def precision(task: TaskSpec) -> str:
    if task.precision == "tolerance":
        return "whatever keeps within the tolerance."
    return f"compute in {task.precision} or better; lower precision is a fault of its own, even within the tolerance."
