"""With torch: foreign tasks run, and what is exported is right in its target. Skipped where torch is not installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.exporters import export_program
from ksearch.lint import lint
from ksearch.programs import named_program
from ksearch.tasks import foreign, load_task
from ksearch.types import Evaluation, Program, Verdict

torch = pytest.importorskip("torch")

CAPPED = """\
#include <cmath>
#include <cstdint>
extern "C" void run(const float* x, const float* scale, const double* cap, float* y, int64_t rows, int64_t columns,
                    int64_t kind) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            y[r * columns + c] = float(*cap * std::tanh(x[r * columns + c] * scale[c] / *cap));
}
"""
KERNELBENCH = ("level1_softsign_rows", "level2_linear_gelu_norm", "level3_small_mixer")


@pytest.mark.parametrize(
    "name",
    [
        "flashinfer_bench/definitions/norm/gated_norm_h96.json",
        "flashinfer_bench/definitions/paged/paged_mean_d32_ps4.json",
        "gpu_mode/soft_cap",
        *(f"kernelbench/{name}.py" for name in KERNELBENCH),
    ],
)
def test_the_reference_of_each_example_is_sound(name: str, examples: Path) -> None:
    report = lint(load_task(foreign.place(examples / name, "cpu")))
    assert report.ok, str(report)
    assert any(row.check == "reference runs" for row in report.rows)


@pytest.mark.slow
def test_the_code_of_a_foreign_task_is_measured_as_a_program(examples: Path) -> None:
    task = load_task(foreign.place(examples / "gpu_mode/soft_cap", "cpu"))
    capped = Program({"cap.cpp": CAPPED}, "cap.cpp::run", "cpp")
    options = EvaluatorOptions(time_budget_s=0.2, confirm=False)
    with LocalEvaluator(task.spec, task.folder, options=options) as evaluator:
        found = evaluator.evaluate(capped).evaluation
    assert isinstance(found, Evaluation)
    assert found.verdict is Verdict.PASSED, found.reason


def test_numbers_that_differ_between_cases_are_inputs(examples: Path) -> None:
    task = load_task(foreign.place(examples / "gpu_mode/soft_cap", "cpu"))
    assert [(t.name, t.dtype, t.shape) for t in task.spec.inputs] == [
        ("x", "float32", ("rows", "columns")),
        ("scale", "float32", ("columns",)),
        ("cap", "float64", ()),
    ]


def test_weights_of_a_model_are_inputs_and_fixed_arguments_are_not(examples: Path) -> None:
    task = load_task(foreign.place(examples / "kernelbench/level3_small_mixer.py", "cpu"))
    names = [t.name for t in task.spec.inputs]
    assert names[0] == "x"
    assert "temperature" not in names
    assert "head_weight" in names
    assert [t.name for t in task.spec.outputs] == ["y0", "y1"]
    assert "temperature is always 1.5" in task.description


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem + "_exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _written(files: Any, folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("language", ["cpp", "python"])
def test_a_submission_passes_the_check_of_the_problem(language: str, examples: Path, tmp_path: Path) -> None:
    task = load_task(foreign.place(examples / "gpu_mode/soft_cap", "cpu"))
    python = "import numpy as np\n\n\ndef run(x, scale, cap):\n    return np.float32(np.tanh(x * scale / cap) * cap)\n"
    programs = {
        "cpp": Program({"cap.cpp": CAPPED}, "cap.cpp::run", "cpp"),
        "python": Program({"cap.py": python}, "cap.py::run", "python"),
    }
    made = export_program(programs[language], task, "gpu-mode", "me")
    submission = _imported(_written(made.files, tmp_path) / "submission.py")
    bridge, problem = _imported(task.folder / "ksearch_bridge.py"), None
    sys.path[:0] = [str(task.folder)]
    try:
        problem = _imported(task.folder / "reference.py")
    finally:
        sys.path.pop(0)
    with bridge.placed("cpu"):
        for case in ({"rows": 3, "columns": 32, "kind": "narrow"}, {"rows": 96, "columns": 1024, "kind": "wide"}):
            data = problem.generate_input(**case, seed=7)
            assert problem.check_implementation(data, submission.custom_kernel(data)) == (True, "")


def test_a_solution_is_taken_and_run_by_flashinfer_bench(examples: Path, tmp_path: Path) -> None:
    data = pytest.importorskip("flashinfer_bench.data")
    compiling = pytest.importorskip("flashinfer_bench.compile")
    place = examples / "flashinfer_bench/definitions/norm/gated_norm_h96.json"
    task = load_task(foreign.place(place, "cpu"))
    made = export_program(named_program(str(place.with_name("gated_norm.cpp")), task), task, "flashinfer-bench", "me")
    solution = data.Solution.model_validate_json(next(iter(made.files.values())))
    definition = data.Definition.model_validate_json(place.read_text())
    built = compiling.BuilderRegistry.get_instance().build(definition, solution)
    x, gate, weight = torch.randn(7, 96).bfloat16(), torch.randn(7, 96).bfloat16(), torch.randn(96)
    y = torch.empty_like(x)
    built(x, gate, weight, 0.5, y)
    scope: dict[str, Any] = {}
    exec(json.loads(place.read_text())["reference"], scope)  # noqa: S102
    torch.testing.assert_close(y, scope["run"](x, gate, weight, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated_norm_h96", "softmax"])
def test_an_operator_passes_its_own_tests_torch_compile_included(name: str, examples: Path, tmp_path: Path) -> None:
    place = examples / "flashinfer_bench/definitions/norm/gated_norm_h96.json"
    task = load_task(foreign.place(place, "cpu") if name == "gated_norm_h96" else name)
    program = task.strong["cpp"] if name == "gated_norm_h96" else task.baseline
    _written(export_program(program, task, "torch-op", "me").files, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_op.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=170)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout


def test_a_model_with_more_weights_than_a_call_can_take_loads_and_says_so(tmp_path: Path) -> None:
    place = tmp_path / "deep.py"
    place.write_text(
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)])\n\n"
        "    def forward(self, x):\n        return self.layers(x)\n\n\n"
        "def get_inputs():\n    return [torch.randn(3, 4)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    report = lint(load_task(foreign.place(place, "cpu")))
    assert report.ok
    assert any("Too many arrays for a CPU: 61 inputs" in row.detail for row in report.rows)


def test_references_may_be_asked_by_several_threads_at_once(examples: Path) -> None:
    """The oracle does that for large inputs; modules and the global generator are shared."""
    folder = foreign.place(examples / "kernelbench/level3_small_mixer.py", "cpu")
    sys.path[:0] = [str(folder)]
    try:
        module = _imported(folder / "reference.py")
    finally:
        sys.path.pop(0)

    def drawn(seed: int) -> tuple[Any, Any]:
        inputs = module.inputs({}, np.random.default_rng(seed))
        return inputs, module.reference({k: v.copy() for k, v in inputs.items()}, {})

    alone = [drawn(seed) for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(drawn, range(12)))
    for (one, first), (other, second) in zip(alone, together, strict=True):
        assert all(np.array_equal(one[k], other[k]) for k in one)
        assert all(np.allclose(first[k], second[k], rtol=1e-4, atol=1e-5) for k in first)
