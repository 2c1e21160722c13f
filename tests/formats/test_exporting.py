"""Programs leave for FlashInfer-Bench, GPU MODE and torch. What needs torch to be seen is in `test_with_torch.py`."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.exporters import TARGETS, ExportError, export_program
from ksearch.programs import named_program
from ksearch.tasks import bundled_tasks, foreign, load_task
from ksearch.types import Program


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", bundled_tasks())
def test_every_bundled_baseline_is_exported_as_valid_code(name: str, target: str) -> None:
    task = load_task(name)
    # Two axes of one say how inputs are drawn, one of the other is the sum of an input: no shape tells them.
    if (name, target) == ("trimul_gpu", "torch-op") or name == "gqa_paged_decode":
        with pytest.raises(ExportError, match="cannot be told from the shapes"):
            export_program(task.baseline, task, target, "somebody")
        return
    made = export_program(task.baseline, task, target, "somebody")
    for path, text in made.files.items():
        if path.endswith(".py"):
            ast.parse(text)
            assert "@" + "ARGUMENTS@" not in text
            assert "@" + "OP@" not in text


def test_a_solution_has_the_fields_of_its_definition(examples: Path) -> None:
    place = examples / "flashinfer_bench/definitions/norm/gated_norm_h96.json"
    task = load_task(foreign.place(place, "cpu"))
    made = export_program(named_program(str(place.with_name("gated_norm.cpp")), task), task, "flashinfer-bench", "me")
    (text,) = made.files.values()
    solution = json.loads(text)
    assert solution["definition"] == "gated_norm_h96"
    assert solution["author"] == "me"
    assert solution["spec"]["destination_passing_style"] is True
    assert solution["spec"]["entry_point"] == "main.py::run"
    (source,) = solution["sources"]
    run = next(n for n in ast.parse(source["content"]).body if isinstance(n, ast.FunctionDef) and n.name == "run")
    assert [a.arg for a in run.args.args] == ["x", "gate", "weight", "epsilon_scale", "y"]


def test_types_are_those_of_the_definition_not_those_held_on_a_cpu(examples: Path) -> None:
    task = load_task(foreign.place(examples / "flashinfer_bench/definitions/norm/gated_norm_h96.json", "cpu"))
    made = export_program(task.strong["cpp"], task, "torch-op", "me")
    assert '"dtype": "bfloat16"' in made.files["ksearch_gated_norm_h96/kernel.py"]


def test_a_program_that_writes_to_its_inputs_is_refused() -> None:
    task = load_task("softmax")
    spec = task.spec
    changed = replace(task, spec=replace(spec, inputs=(replace(spec.inputs[0], mutable=True), *spec.inputs[1:])))
    with pytest.raises(ExportError, match="writes to its inputs"):
        export_program(task.baseline, changed, "torch-op", "me")


def test_an_axis_that_no_shape_tells_is_no_matter_where_the_program_does_not_look_at_it() -> None:
    task = load_task("trimul_gpu")
    assert export_program(task.baseline, task, "gpu-mode", "me").files  # Python: it is not given the axes
    source = 'extern "C" void run(const float* x, long long mask_kind) { if (mask_kind > 1) return; }'
    looking = Program({"k.cu": source}, "k.cu::run", "cuda")
    with pytest.raises(ExportError, match="axis mask_kind cannot be told"):
        export_program(looking, task, "gpu-mode", "me")


def test_an_unknown_target_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ExportError, match="'onnx' is no target.*flashinfer-bench, gpu-mode, torch-op"):
        export_program(load_task("softmax").baseline, load_task("softmax"), "onnx", "me")
