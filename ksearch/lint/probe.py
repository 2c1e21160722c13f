"""Runs in a process of its own, `python -m ksearch.lint.probe FOLDER FD`: everything that needs the reference.

Rows go out on descriptor FD as JSON lines, each announced before it is begun, so that the parent can name the
check that hung. The task author's code may print, raise or exit: none of that is taken for a row.

A check returns its detail, or raises `Mistake`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ksearch.definition import AxisDomain, Tensor, Workload
from ksearch.lint.flaws import FLAWS, Flaw
from ksearch.lint.reference import SEED, Array, Mistake, Reference
from ksearch.lint.report import Row, Status
from ksearch.tasks import foreign, load_task

UNSEEN_BYTES = 16 << 20  # size of the shapes drawn from the domain
UNSEEN_SHAPES = 5


def loads(r: Reference) -> str:
    r.load()
    return "functions found"


def runs(r: Reference) -> str:
    for workload in r.spec.workloads:
        axes = dict(workload.axes)
        inputs = r.draw(axes, SEED)
        r.drawn[workload.name] = inputs, r.expect(inputs, axes)
    return f"{len(r.drawn)} workloads: shapes and types as declared"


def is_finite(r: Reference) -> str:
    infinite = set()
    for name, (inputs, outputs) in r.drawn.items():
        for output, value in outputs.items():
            _refuse_nan(value, f"{output} of workload {name!r}")
            if np.isinf(value).any():
                infinite.add(output)
        for label, value in inputs.items():
            _refuse_nan(value, f"input {label} of workload {name!r}")
    return f"no NaN; infinities in {', '.join(sorted(infinite))}" if infinite else "no NaN, no infinity"


def _refuse_nan(value: Array, where: str) -> None:
    if value.dtype.kind == "f" and np.isnan(value).any():
        index = tuple(int(i) for i in np.argwhere(np.isnan(value))[0])
        raise Mistake(
            f"{where} has NaN, first at {list(index)}",
            "Compute the special case apart, or choose inputs for which the result is defined.",
        )


def is_deterministic(r: Reference) -> str:
    for workload in r.by_size():
        axes, (inputs, outputs) = dict(workload.axes), r.drawn[workload.name]
        again = r.draw(axes, SEED)
        for name, value in inputs.items():
            if not np.array_equal(value, again[name], equal_nan=value.dtype.kind == "f"):
                cure = "Take all randomness from the rng that inputs() receives."
                raise Mistake(f"inputs() gives another {name} for the same seed", cure)
        given = {k: v.copy() for k, v in inputs.items()}
        second = r.declared("reference", r.call("reference", given, dict(axes)), r.spec.outputs, axes)
        for name, value in outputs.items():
            if not np.array_equal(value, second[name], equal_nan=value.dtype.kind == "f"):
                cure = "Remove random numbers and state from reference()."
                raise Mistake(f"reference() gives another {name} for the same inputs", cure)
        for tensor in r.spec.inputs:
            if not tensor.mutable and not np.array_equal(
                given[tensor.name], inputs[tensor.name], equal_nan=tensor.dtype.startswith("float")
            ):
                raise Mistake(f"reference() changes its input {tensor.name}", "Work on a copy.")
    return "one seed, one result; inputs stay as they were"


def is_precise(r: Reference) -> str:
    narrow = {
        f"{t.name} in {outputs[t.name].dtype}"
        for _, outputs in r.drawn.values()
        for t in r.spec.outputs
        if t.dtype.startswith("float") and outputs[t.name].dtype != np.float64
    }
    if narrow:
        cure = "Convert the inputs with .astype(np.float64) before anything else."
        if foreign.about(r.task.folder):
            cure = "It is the code as it was found: leave room for its own rounding in the tolerance."
        raise Mistake(f"reference() gives {', '.join(sorted(narrow))}, not float64", cure)
    return "float outputs are computed in float64"


def awkward_cases(r: Reference) -> str:
    if "awkward" not in r.scope:
        return "none given (awkward() is optional)"
    count = 0
    for workload in r.by_size():
        axes = dict(workload.axes)
        cases = r.call("awkward", dict(axes), np.random.default_rng(SEED))
        if not isinstance(cases, list):
            raise Mistake(f"awkward() returned {type(cases).__name__}", "Return a list of dicts, as inputs() does.")
        for number, case in enumerate(cases):
            where = f"of awkward case {number}, workload {workload.name!r}"
            outputs = r.expect(r.declared("awkward", case, r.spec.inputs, axes), axes)
            for name, value in outputs.items():
                _refuse_nan(value, f"{name} {where}")
            count += 1
    return f"{count} cases"


def unseen_shapes(r: Reference) -> str:
    spec, rng, seen = r.spec, np.random.default_rng(SEED), 0
    least = {
        a: min(d.values) if d.values else -(-d.min // d.multiple_of) * d.multiple_of for a, d in spec.domain.items()
    }
    shapes = [least, *({a: _pick(d, rng) for a, d in spec.domain.items()} for _ in range(40))]
    for axes in shapes:
        try:
            if not spec.allows(axes):
                continue
            size = sum(t.size_bytes(spec.names(axes)) for t in (*spec.inputs, *spec.outputs))
        except ValueError as error:
            raise Mistake(f"{error}", "Narrow the domain, or correct the shape.") from None
        if size > UNSEEN_BYTES and axes is not least:
            continue
        r.expect(r.draw(axes, SEED), axes)
        seen += 1
        if seen == UNSEEN_SHAPES:
            break
    return f"{seen} shapes of the domain"


def possible_floor(r: Reference) -> str:
    for workload in r.spec.workloads:
        names = r.spec.names(workload.axes)
        most = sum(t.size_bytes(names) * (2 if t.mutable else 1) for t in (*r.spec.inputs, *r.spec.outputs))
        claimed, _ = r.spec.floor(names)
        if claimed > most:
            raise Mistake(
                f"bytes_moved is {claimed:.0f} for workload {workload.name!r}; all arrays together are {most} bytes",
                "Count each array once: a correct kernel would be called too fast.",
            )
    return "no more traffic than the arrays hold"


def depends_on(r: Reference, tensor: Tensor) -> str:
    """Another draw of this one input has to change what the judge accepts, on one workload at least."""
    workloads, blind, same = r.by_size(), [], True
    if all(_unchanged(r, tensor, w) for w in workloads):  # as lengths are where there is one sequence only
        workloads = r.ordered()
    for workload in workloads:
        axes, (inputs, outputs) = dict(workload.axes), r.drawn[workload.name]
        other = _another(r, tensor, axes, inputs[tensor.name])
        if np.array_equal(other, inputs[tensor.name], equal_nan=tensor.dtype.startswith("float")):
            blind.append(workload)
            continue
        same = False
        try:
            changed = r.expect({**inputs, tensor.name: other}, axes)
        except Mistake:
            continue  # such as a page table that does not fit the lengths: the reference does look at it
        if r.accepted(changed, outputs):
            blind.append(workload)
    if len(blind) < len(workloads):
        timed = [w.name for w in blind if w.timed]
        seen = f"seen on {len(workloads) - len(blind)} of {len(workloads)} workloads"
        return f"{seen}, not on {', '.join(timed)}" if timed else seen
    if same:
        raise Mistake(
            f"inputs() gives the same {tensor.name} for every seed, so a kernel may have it built in",
            f"Draw {tensor.name} from the rng, or drop it from the inputs.",
        )
    raise Mistake(
        f"a kernel that ignores the values of {tensor.name} would pass",
        f"Choose inputs for which {tensor.name} matters, tighten the tolerance, or drop {tensor.name}.",
    )


def _another(r: Reference, tensor: Tensor, axes: dict[str, int], value: Array) -> Array:
    """Another draw; a scalar that is the same in each may be another workload's."""
    other = r.draw(axes, SEED + 1)[tensor.name]
    if tensor.shape or other != value:
        return other
    return next((v for inputs, _ in r.drawn.values() if (v := inputs[tensor.name]) != value), other)


def _unchanged(r: Reference, tensor: Tensor, workload: Workload) -> bool:
    other = r.draw(dict(workload.axes), SEED + 1)[tensor.name]
    drawn = r.drawn[workload.name][0][tensor.name]
    return bool(np.array_equal(other, drawn, equal_nan=tensor.dtype.startswith("float")))


def refuses(r: Reference, flaw: Flaw, tensor: Tensor) -> str:
    """Every other output right, this one flawed: the judge has to refuse it on every timed workload."""
    tried = 0
    for workload in r.spec.workloads:
        if not workload.timed:
            continue
        inputs, outputs = r.drawn[workload.name]
        fake = flaw(r, tensor.name, inputs, outputs)
        if fake is None:
            continue
        tried += 1
        if r.accepted({tensor.name: fake}, outputs):
            raise Mistake(
                f"the judge accepts it for {tensor.name} of workload {workload.name!r}",
                f"Tighten the tolerance for {tensor.dtype}, or choose inputs that spread the values of {tensor.name}.",
            )
    return f"refused on {tried} workloads" if tried else "no input or neighbour to take it from"


def _pick(domain: AxisDomain, rng: np.random.Generator) -> int:
    """A size of the domain, small ones as likely as large ones."""
    if domain.values:
        return int(rng.choice(domain.values))
    low, high = -(-domain.min // domain.multiple_of), domain.max // domain.multiple_of
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 0.999)))) * domain.multiple_of


def report(out: Any, check: str, function: Callable[[], str], soft: bool = False) -> bool:
    print(json.dumps({"begin": check}), file=out, flush=True)
    try:
        row = Row(check, Status.OK, function())
    except Mistake as error:
        row = Row(check, Status.NOTE if soft else Status.FAIL, str(error), error.cure)
    print(json.dumps({"row": asdict(row)}), file=out, flush=True)
    return row.status is not Status.FAIL


def main(folder: str, fd: str) -> None:
    with os.fdopen(int(fd), "w") as out:
        r = Reference(load_task(Path(folder)))
        report(out, "floor is possible", partial(possible_floor, r))
        if not (report(out, "reference loads", partial(loads, r)) and report(out, "reference runs", partial(runs, r))):
            return
        finite = report(out, "reference is finite", partial(is_finite, r))
        same = report(out, "reference is deterministic", partial(is_deterministic, r))
        report(out, "reference is precise", partial(is_precise, r), soft=True)
        report(out, "awkward cases", partial(awkward_cases, r))
        report(out, "unseen shapes", partial(unseen_shapes, r))
        if not (finite and same):
            return  # nothing can be judged against such a reference
        for tensor in r.spec.inputs:
            report(out, f"depends on {tensor.name}", partial(depends_on, r, tensor))
        for name, flaw in FLAWS.items():
            for tensor in r.spec.outputs:
                report(out, f"refuses {name} in {tensor.name}", partial(refuses, r, flaw, tensor))


if __name__ == "__main__":
    main(*sys.argv[1:])
