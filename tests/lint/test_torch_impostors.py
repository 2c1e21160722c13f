"""The generated programs for GPU tasks do what their names say. Called on the CPU, where torch is installed."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ksearch.definition import Workload
from ksearch.lint.torch_impostors import blind, torch_impostors
from ksearch.tasks import Task, load_task
from ksearch.types import Program

SMALL = {"batch": 1, "n": 32, "c": 64, "mask_kind": 2, "distribution": 1}


@pytest.fixture(scope="module")
def task() -> Task:
    task = load_task("trimul_gpu")
    workloads = (Workload("one", SMALL), Workload("two", {**SMALL, "batch": 2, "mask_kind": 3}))
    return replace(task, spec=replace(task.spec, workloads=workloads))


def test_every_program_is_python_and_enters_at_run(task):
    programs = [i.program for i in (*torch_impostors(task), *blind(task).values())]
    assert len({p.id for p in programs}) == len(programs)
    for program in programs:
        tree = ast.parse(program.sources["impostor.py"])
        (run,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"]
        assert [a.arg for a in run.args.args] == [t.name for t in (*task.spec.inputs, *task.spec.outputs)]
    assert list(blind(task)) == [t.name for t in task.spec.inputs]


def test_where_no_input_has_the_shape_of_an_output_none_is_returned(task):
    names = {i.name for i in torch_impostors(task)}
    assert "an input returned" in names  # x has the shape of y
    outputs = tuple(replace(t, shape=("c", "c")) for t in task.spec.outputs)
    other = replace(task, spec=replace(task.spec, outputs=outputs, workloads=task.spec.workloads[:1]))
    assert names - {i.name for i in torch_impostors(other)} == {
        "an input returned",
        "right only for the first workload",
    }


def test_right_for_the_first_is_right_for_the_first_timed_workload_and_wrong_for_another(task):
    first, second = task.spec.workloads
    untimed = replace(task, spec=replace(task.spec, workloads=(replace(first, timed=False), second)))
    assert "right only for the first workload" not in {i.name for i in torch_impostors(untimed)}
    third = replace(second, name="three", axes={**SMALL, "n": 64})
    mixed = replace(task, spec=replace(task.spec, workloads=(replace(first, timed=False), second, third)))
    (found,) = [i for i in torch_impostors(mixed) if i.name == "right only for the first workload"]
    line = found.program.sources["impostor.py"].split("AXES = ")[1].splitlines()[0]
    assert json.loads(line)[0] == second.axes


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def load(program: Program) -> Any:
        for name, text in program.sources.items():
            (tmp_path / name).write_text(text)
        sys.modules.pop("task_reference", None)
        scope: dict[str, Any] = {"__name__": "program"}
        exec(compile(program.sources["impostor.py"], "impostor.py", "exec"), scope)  # noqa: S102
        return scope["run"]

    monkeypatch.syspath_prepend(tmp_path)
    yield load
    sys.modules.pop("task_reference", None)


def test_only_the_reference_itself_is_right_and_every_input_counts(task, call):
    torch = pytest.importorskip("torch")
    from ksearch.evaluators.gpu import judging

    scope: dict[str, Any] = {"__name__": "reference"}
    exec(compile(task.reference_source, "reference.py", "exec"), scope)  # noqa: S102
    right: dict[str, list[bool]] = {}
    for impostor in (*torch_impostors(task), *blind(task).values()):
        run = call(impostor.program)
        for workload in task.spec.workloads:
            given = scope["inputs"](dict(workload.axes), torch.Generator().manual_seed(3))
            wanted = scope["reference"](dict(given), dict(workload.axes))["y"]
            got = torch.full(given["x"].shape, 777.0)
            kept = {name: value.clone() for name, value in given.items()}
            assert run(*given.values(), got) is None
            assert all(torch.equal(given[name], kept[name]) for name in given)
            found = judging.compare(got, wanted, task.spec.tolerance["float32"])
            right.setdefault(impostor.name, []).append(found.verdict == "passed")
    assert right.pop("the reference itself") == [True, True]
    assert right.pop("right only for the first workload") == [True, False]
    assert [name for name, found in right.items() if any(found)] == []
