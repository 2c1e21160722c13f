"""The generated programs do what their names say: called directly, on the task's own workloads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ksearch.lint import impostors
from ksearch.lint.reference import Arrays, Reference
from ksearch.tasks import bundled_tasks, load_task
from ksearch.types import Program


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Program], Any]]:
    def load(program: Program) -> Any:
        for name, text in program.sources.items():
            (tmp_path / name).write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        sys.modules.pop("task_reference", None)
        file, _, name = program.entry_point.partition("::")
        scope: dict[str, Any] = {"__name__": "program"}
        exec(compile(program.sources[file], file, "exec"), scope)  # noqa: S102
        return scope[name]

    yield load
    sys.modules.pop("task_reference", None)


def _outputs(reference: Reference, run: Any, inputs: Arrays, axes: dict[str, int]) -> Arrays:
    names = reference.spec.names(axes)
    outputs = {t.name: np.full(t.dims(names), 777, dtype=t.dtype) for t in reference.spec.outputs}
    assert run(*inputs.values(), *outputs.values()) is None
    return outputs


@pytest.mark.parametrize("name", [n for n in bundled_tasks() if load_task(n).spec.device == "cpu"])
def test_the_honest_twin_is_right_and_every_impostor_wrong(name, importing):
    task = load_task(name)
    reference = Reference(task)
    reference.load()
    workloads = [w for w in task.spec.workloads if task.spec.floor(w.axes)[0] < 18e6]  # larger ones only cost time
    accepted: dict[str, dict[str, bool]] = {}
    for impostor in impostors(task):
        run = importing(impostor.program)
        for workload in workloads:
            axes = dict(workload.axes)
            inputs = reference.draw(axes, 3)
            got = _outputs(reference, run, inputs, axes)
            right = reference.accepted(got, reference.expect(inputs, axes))
            accepted.setdefault(impostor.name, {})[workload.name] = right
        assert impostor.passes == all(accepted[impostor.name].values()), accepted[impostor.name]
    first, *others = [w.name for w in workloads]
    only_first = accepted["right only for the first workload"]
    assert only_first[first]
    assert not any(only_first[w] for w in others if w != "one_element")
    assert len(accepted) >= 5


def test_an_input_is_returned_only_where_one_has_the_shape_of_the_output(folder):
    assert "an input returned" in {i.name for i in impostors(load_task(folder))}
    gemm = {i.name for i in impostors(load_task("gemm"))}
    assert "an input returned" not in gemm
    assert "zeros" in gemm
