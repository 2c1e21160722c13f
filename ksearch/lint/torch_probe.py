"""`python -m ksearch.lint.torch_probe FOLDER FD`: what can be seen of a reference on torch by itself, on a GPU.

Rows go out as those of `ksearch.lint.probe` do. One workload at a time: some fill a good part of the GPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ksearch.definition import Tensor, Workload
from ksearch.evaluators import taskcode
from ksearch.evaluators.gpu import judging
from ksearch.lint.probe import report
from ksearch.lint.reference import SEED, Mistake
from ksearch.tasks import Task, load_task

Tensors = dict[str, torch.Tensor]


@dataclass
class TorchReference:
    task: Task
    device: str = "cuda"
    scope: dict[str, Any] = field(default_factory=dict)

    def load(self) -> str:
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.scope = self._told(lambda: taskcode.load(self.task.reference_path))
        for name in ("inputs", "reference"):
            self._told(partial(taskcode.function, self.scope, name, self.task.folder))
        return "functions found"

    def call(self, name: str, *arguments: Any) -> Any:
        return self._told(lambda: taskcode.call(name, self.scope[name], *arguments))

    def _told(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except taskcode.TaskFault as error:
            raise Mistake(str(error), "Correct that line.") from error
        except MemoryError as error:
            raise Mistake(f"no memory: {error}", "Make the workload smaller, or work in pieces.") from error

    def generator(self) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(SEED)

    def draw(self, workload: Workload) -> Tensors:
        axes = dict(workload.axes)
        return self.declared("inputs", self.call("inputs", axes, self.generator()), self.task.spec.inputs, axes)

    def expect(self, inputs: Mapping[str, torch.Tensor], axes: Mapping[str, int]) -> Tensors:
        given = self.call("reference", {k: v.clone() for k, v in inputs.items()}, dict(axes))
        return self.declared("reference", given, self.task.spec.outputs, axes)

    def declared(self, what: str, values: Any, tensors: tuple[Tensor, ...], axes: Mapping[str, int]) -> Tensors:
        """Checked against the declaration; outputs may be of a higher precision than declared."""
        names = self.task.spec.names(axes)
        for tensor in tensors:
            value = values.get(tensor.name) if isinstance(values, dict) else None
            if not isinstance(value, torch.Tensor):
                raise Mistake(
                    f"{what}() did not return a tensor {tensor.name!r}", f"Return a dict with {tensor.name!r}."
                )
            where = f"{what}(): {tensor.name} for {dict(axes)}"
            if tuple(value.shape) != tensor.dims(names):
                raise Mistake(
                    f"{where} has shape {tuple(value.shape)}, declared {tensor.dims(names)}", "Correct either."
                )
            if what != "reference" and str(value.dtype) != f"torch.{tensor.dtype}":
                raise Mistake(f"{where} is {value.dtype}, declared {tensor.dtype}", f"Add .to(torch.{tensor.dtype}).")
        return {t.name: values[t.name] for t in tensors}

    def timed(self) -> Iterator[Workload]:
        yield from (w for w in self.task.spec.workloads if w.timed)


def runs(r: TorchReference) -> str:
    """Shapes, types and NaN, on every timed workload."""
    count, infinite = 0, set()
    for workload in r.timed():
        inputs = r.draw(workload)
        for name, value in (*inputs.items(), *r.expect(inputs, workload.axes).items()):
            _refuse_nan(value, f"{name} of workload {workload.name!r}")
            if value.dtype.is_floating_point and bool(torch.isinf(value.float()).any()):
                infinite.add(name)
        count += 1
    told = f"infinities in {', '.join(sorted(infinite))}" if infinite else "no infinity"
    return f"{count} timed workloads: shapes and types as declared, no NaN, {told}"


def _refuse_nan(value: torch.Tensor, where: str) -> None:
    if value.dtype.is_floating_point and bool(torch.isnan(value.float()).any()):
        cure = "Compute the special case apart, or choose inputs for which the result is defined."
        raise Mistake(f"{where} has NaN", cure)


def is_deterministic(r: TorchReference) -> str:
    exact = True
    for workload in r.timed():
        inputs, again = r.draw(workload), r.draw(workload)
        for name, value in inputs.items():
            if not _same(value, again[name]):
                cure = "Take all randomness from the generator that inputs() receives."
                raise Mistake(f"inputs() gives another {name} for the same seed ({workload.name})", cure)
        del again
        first, second = r.expect(inputs, workload.axes), r.expect(inputs, workload.axes)
        for tensor in r.task.spec.outputs:
            one, other = first[tensor.name], second[tensor.name]
            exact &= _same(one, other)
            limit = r.task.spec.tolerance[tensor.dtype]
            if not _same(one, other) and judging.compare(other, one, limit).verdict != "passed":
                cure = "Remove random numbers and state from reference()."
                raise Mistake(f"reference() gives another {tensor.name} for the same inputs ({workload.name})", cure)
    return "one seed, one result" + ("" if exact else ", within the tolerance (sums in another order)")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    flat = [value.contiguous().reshape(-1).view(torch.uint8) for value in (one, other)]
    return bool(torch.equal(*flat))


def leaves_inputs(r: TorchReference) -> str:
    for workload in r.timed():
        inputs = r.draw(workload)
        given = {name: value.clone() for name, value in inputs.items()}
        r.call("reference", given, dict(workload.axes))
        for tensor in r.task.spec.inputs:
            if not tensor.mutable and not _same(given[tensor.name], inputs[tensor.name]):
                raise Mistake(f"reference() changes its input {tensor.name}", "Work on a copy.")
    return "inputs stay as they were"


def is_precise(r: TorchReference) -> str:
    first = next(r.timed())
    outputs = r.expect(r.draw(first), first.axes)
    narrow = [f"{n} in {v.dtype}" for n, v in outputs.items() if v.dtype.is_floating_point and v.element_size() < 4]
    if narrow:
        raise Mistake(f"reference() gives {', '.join(narrow)}", "Compute in float64 where it fits, else in float32.")
    return "float outputs are computed in float32 at least"


def awkward_cases(r: TorchReference) -> str:
    if "awkward" not in r.scope:
        return "none given (awkward() is optional)"
    count = 0
    for workload in r.timed():
        cases = r.call("awkward", dict(workload.axes), r.generator())
        if not isinstance(cases, list):
            raise Mistake(f"awkward() returned {type(cases).__name__}", "Return a list of dicts, as inputs() does.")
        for number, case in enumerate(cases):
            inputs = r.declared("awkward", case, r.task.spec.inputs, workload.axes)
            for name, value in r.expect(inputs, workload.axes).items():
                _refuse_nan(value, f"{name} of awkward case {number}, workload {workload.name!r}")
            count += 1
    return f"{count} cases"


def look(r: TorchReference, out: Any) -> None:
    if not (report(out, "reference loads", r.load) and report(out, "reference runs", partial(runs, r))):
        return
    report(out, "reference is deterministic", partial(is_deterministic, r))
    report(out, "reference leaves its inputs alone", partial(leaves_inputs, r))
    report(out, "reference is precise", partial(is_precise, r), soft=True)
    report(out, "awkward cases", partial(awkward_cases, r))


def main(folder: str, fd: str) -> None:
    with os.fdopen(int(fd), "w") as out:
        look(TorchReference(load_task(Path(folder))), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
