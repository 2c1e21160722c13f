"""What a task is to those who measure it: frozen, JSON-able, standard library only.

A `TaskSpec` is the whole contract between a task folder, the evaluator's processes and a bundle that
travels to another machine. Names follow FlashInfer-Bench (definition, workload, axes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ksearch.expressions import Number, evaluate
from ksearch.types import Program, check, check_number

DTYPE_BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1,
    "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
CUDA_ONLY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # NumPy has no such types
DEVICES = ("cpu", "cuda")
C_TYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "float16": "_Float16", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
CUDA_TYPES: Mapping[str, str] = {
    **C_TYPES, "float16": "__half", "bfloat16": "__nv_bfloat16", "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
}  # fmt: skip
MEANS = ("geometric", "arithmetic")


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: contiguous, row-major. `shape` holds axis names, whole numbers or expressions."""

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    mutable: bool = False  # an input that the program may write to

    def __post_init__(self) -> None:
        check(self.name.isidentifier(), f"tensor name {self.name!r} must be an identifier")
        check(
            self.dtype in DTYPE_BYTES,
            f"{self.name}: unknown dtype {self.dtype!r}, known: {', '.join(DTYPE_BYTES)}",
        )

    def dims(self, names: Mapping[str, Number]) -> tuple[int, ...]:
        """The shape in whole numbers.

        Raises:
            ValueError: an expression is wrong, or gives no whole number of at least 0.
        """
        found = []
        for entry in self.shape:
            size = entry if isinstance(entry, int) else evaluate(entry, names)
            check(size == int(size) and size >= 0, f"{self.name}: dimension {entry!r} is {size}, not a size")
            found.append(int(size))
        return tuple(found)

    def size_bytes(self, names: Mapping[str, Number]) -> int:
        return math.prod(self.dims(names)) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Workload:
    """One point of use: a value for every axis."""

    name: str
    axes: Mapping[str, int]
    timed: bool = True  # False: checked for correctness only


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An output passes when |got - expected| <= atol + rtol * |expected| everywhere, and its relative
    Frobenius error ||got - expected|| / ||expected|| is at most `norm`."""

    rtol: float
    atol: float
    norm: float

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "norm"):
            check_number(name, getattr(self, name), 0)


@dataclass(frozen=True, slots=True)
class AxisDomain:
    """The values an axis may take beyond the workloads: a range in steps of `multiple_of`, or a list."""

    min: int = 1
    max: int = 1
    multiple_of: int = 1
    values: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.values:
            return
        first = -(-self.min // self.multiple_of) * self.multiple_of if self.multiple_of >= 1 else 0
        check(
            self.multiple_of >= 1 and self.min <= self.max and first <= self.max,
            f"domain min={self.min}, max={self.max}, multiple_of={self.multiple_of} holds no value",
        )

    def __contains__(self, value: object) -> bool:
        if self.values:
            return value in self.values
        return isinstance(value, int) and self.min <= value <= self.max and value % self.multiple_of == 0


@dataclass(frozen=True, slots=True)
class Floor:
    """Compulsory work as expressions over axes and constants: the least any correct program must do."""

    bytes_moved: str = "0"
    operations: str = "0"

    def __call__(self, names: Mapping[str, Number]) -> tuple[float, float]:
        """(bytes_moved, operations) for these axes."""
        return float(evaluate(self.bytes_moved, names)), float(evaluate(self.operations, names))


@dataclass(frozen=True, slots=True)
class Limits:
    """Wall-clock limits per stage in seconds, and what one candidate may use."""

    build_s: float = 60.0
    smoke_s: float = 20.0  # load and first call
    check_s: float = 60.0  # all calls of one workload
    time_s: float = 120.0  # everything that is timed, all workloads together
    memory_bytes: int = 4 << 30  # beyond what the runner and its buffers use anyway
    disk_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task in full, save for its `reference.py`, which stays in the folder."""

    name: str
    entry_point: str  # the symbol or function to call, such as "run"
    axes: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    workloads: tuple[Workload, ...]
    tolerance: Mapping[str, Tolerance]  # by output dtype
    baseline: Program
    title: str = ""
    description: str = ""
    languages: tuple[str, ...] = ("cpp",)
    precision: str = "tolerance"  # or the least dtype whose rounding error the outputs may show: "float32"
    domain: Mapping[str, AxisDomain] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    mean: str = "geometric"
    strong: Mapping[str, Program] = field(default_factory=dict)
    constants: Mapping[str, Number] = field(default_factory=dict)
    forbid: tuple[str, ...] = ()  # libraries, symbols or modules that a program may not lean on
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    hash: str = ""  # SHA-256 over the folder's content
    constraints: tuple[str, ...] = ()  # expressions that are at least 0 for every combination of sizes that makes sense
    device: str = "cpu"  # where the programs run and the tensors lie; "cuda": reference.py works on torch tensors

    def __post_init__(self) -> None:
        check(bool(self.inputs) and bool(self.outputs), f"task {self.name!r} needs inputs and outputs")
        check(bool(self.workloads), f"task {self.name!r} needs at least one workload")
        check(self.mean in MEANS, f"mean must be one of {', '.join(MEANS)}, got {self.mean!r}")
        check(self.device in DEVICES, f"device must be one of {', '.join(DEVICES)}, got {self.device!r}")
        for tensor in (*self.inputs, *self.outputs):
            check(
                self.device == "cuda" or tensor.dtype not in CUDA_ONLY,
                f'{tensor.name}: dtype {tensor.dtype} needs device = "cuda"',
            )
        check(self.threads >= 1, f"threads must be at least 1, got {self.threads!r}")
        names = [t.name for t in (*self.inputs, *self.outputs)]
        check(len(set(names)) == len(names), f"task {self.name!r}: two tensors share a name: {sorted(names)}")
        labels = [w.name for w in self.workloads]
        check(
            len(set(labels)) == len(labels),
            f"task {self.name!r}: two workloads share a name: {sorted(labels)}",
        )
        for workload in self.workloads:
            missing = set(self.axes) ^ set(workload.axes)
            check(
                not missing,
                f"workload {workload.name!r}: axes missing or unknown: {', '.join(sorted(missing))}",
            )
        for tensor in self.outputs:
            check(
                tensor.dtype in self.tolerance,
                f"no tolerance for dtype {tensor.dtype} of output {tensor.name}",
            )

    def names(self, axes: Mapping[str, int]) -> dict[str, Number]:
        """Everything an expression may use: the constants and these axes."""
        return {**self.constants, **axes}

    def allows(self, axes: Mapping[str, int]) -> bool:
        """Whether these sizes make sense together."""
        return all(evaluate(c, self.names(axes)) >= 0 for c in self.constraints)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives the same spec back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TaskSpec:
        """Inverse of `to_dict`, also after a trip through JSON.

        Raises:
            ValueError: a field is unknown or missing, or a value breaks a rule of the spec.
        """
        unknown = set(data) - {f.name for f in fields(cls)}
        check(not unknown, f"unknown fields in a task spec: {', '.join(sorted(unknown))}")
        built = dict(data)
        try:
            for name in ("inputs", "outputs"):
                built[name] = tuple(Tensor(**{**t, "shape": tuple(t["shape"])}) for t in data[name])
            built["workloads"] = tuple(Workload(**w) for w in data["workloads"])
            built["tolerance"] = {k: Tolerance(**v) for k, v in data["tolerance"].items()}
            built["baseline"] = Program(**data["baseline"])
            built["strong"] = {k: Program(**v) for k, v in data.get("strong", {}).items()}
            built["domain"] = {
                k: AxisDomain(**{**v, "values": tuple(v.get("values", ()))}) for k, v in data.get("domain", {}).items()
            }
            built["floor"] = Floor(**data.get("floor", {}))
            built["limits"] = Limits(**data.get("limits", {}))
            for name in ("axes", "languages", "forbid", "constraints"):
                if name in data:
                    built[name] = tuple(data[name])
            return cls(**built)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a task spec: {error}") from error
