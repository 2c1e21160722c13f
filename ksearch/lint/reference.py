"""The task's own code, called with care: what `reference.py` raises or returns wrongly is a `Mistake`."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ksearch.definition import TaskSpec, Tensor, Workload
from ksearch.evaluators.compare import compare
from ksearch.tasks import Task

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
SEED = 20260101
SMALL_BYTES = 4 << 20  # inputs of workloads that are computed again and again


class Mistake(Exception):
    """The task is wrong; `cure` says how to put it right."""

    def __init__(self, detail: str, cure: str) -> None:
        super().__init__(detail)
        self.cure = cure


@dataclass
class Reference:
    """The task with its reference loaded, and one draw of inputs and outputs per workload."""

    task: Task
    scope: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, tuple[Arrays, Arrays]] = field(default_factory=dict)

    @property
    def spec(self) -> TaskSpec:
        return self.task.spec

    def call(self, name: str, *arguments: Any) -> Any:
        """A function of reference.py; whatever it raises becomes a mistake with its line."""
        try:
            with np.errstate(all="ignore"):
                return self.scope[name](*arguments)
        except (Exception, SystemExit) as error:  # boundary: the task author's code
            raise Mistake(
                f"{name}() raised {type(error).__name__}: {error} ({self._line(error)})", "Correct that line."
            ) from error

    def _line(self, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename == str(self.task.reference_path)]
        return f"reference.py:{own[-1].lineno}: {own[-1].line}" if own else "outside reference.py"

    def load(self) -> None:
        self.scope = {"__name__": "reference", "__file__": str(self.task.reference_path)}
        sys.path.insert(0, str(self.task.folder))
        code = compile(self.task.reference_source, str(self.task.reference_path), "exec")
        self.scope["load"] = lambda: exec(code, self.scope)  # noqa: S102
        self.call("load")

    def draw(self, axes: dict[str, int], seed: int) -> Arrays:
        values = self.call("inputs", dict(axes), np.random.default_rng(seed))
        return self.declared("inputs", values, self.spec.inputs, axes)

    def expect(self, inputs: Arrays, axes: dict[str, int]) -> Arrays:
        """What the reference gives, checked against the declaration; float outputs stay as it gave them."""
        values = self.call("reference", {k: v.copy() for k, v in inputs.items()}, dict(axes))
        return self.declared("reference", values, self.spec.outputs, axes)

    def declared(self, what: str, values: Any, tensors: tuple[Tensor, ...], axes: dict[str, int]) -> Arrays:
        if not isinstance(values, dict):
            raise Mistake(f"{what}() returned {type(values).__name__}", "Return a dict of arrays by name.")
        final = {t.name for t in self.spec.inputs if t.mutable} if what == "reference" else set()
        if extra := sorted(set(values) - {t.name for t in tensors} - final):
            raise Mistake(f"{what}() also returned {', '.join(map(repr, extra))}", "Return what task.toml declares.")
        names = self.spec.names(axes)
        for tensor in tensors:
            if tensor.name not in values:
                raise Mistake(f"{what}() did not return {tensor.name!r}", f"Return a dict with {tensor.name!r}.")
            value, dims = values[tensor.name], tensor.dims(names)
            if not isinstance(value, np.ndarray) or value.shape != dims:
                shape = getattr(value, "shape", type(value).__name__)
                raise Mistake(
                    f"{what}(): {tensor.name} has shape {shape} for {axes}, declared {dims}",
                    f"Correct reference.py, or the shape of {tensor.name} in task.toml.",
                )
            if what != "reference" and value.dtype != np.dtype(tensor.dtype):
                raise Mistake(
                    f"{what}(): {tensor.name} is {value.dtype}, declared {tensor.dtype}",
                    f"Add .astype(np.{tensor.dtype}) in {what}().",
                )
        return {t.name: values[t.name] for t in tensors}

    def accepted(self, got: Arrays, want: Arrays) -> bool:
        """By the same comparison that the evaluator's oracle makes."""
        for tensor in self.spec.outputs:
            if tensor.name in got:
                with np.errstate(all="ignore"):
                    cast = np.ascontiguousarray(got[tensor.name]).astype(tensor.dtype)
                expected = np.ascontiguousarray(want[tensor.name])
                if compare(cast, expected, self.spec.tolerance[tensor.dtype]).verdict != "passed":
                    return False
        return True

    def by_size(self) -> list[Workload]:
        """Workloads, the smallest first, without those that would take long to compute again and again."""
        ordered = self.ordered()
        small = [w for w in ordered if self._bytes(w) <= SMALL_BYTES]
        return small or ordered[:1]

    def ordered(self) -> list[Workload]:
        """All workloads, the smallest first."""
        return sorted(self.spec.workloads, key=self._bytes)

    def _bytes(self, workload: Workload) -> int:
        return sum(a.nbytes for a in self.drawn[workload.name][0].values())
