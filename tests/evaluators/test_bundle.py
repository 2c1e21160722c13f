"""Evaluation elsewhere: a folder out, results back, also in part."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators.bundle import Wanted, evaluate_bundle, read_results, write_bundle
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import python_paths
from ksearch.types import Evaluation, Program, Verdict

Cpp = Callable[..., Program]


@pytest.fixture
def bundle(tmp_path: Path, spec: TaskSpec, task: Path, cpp: Cpp) -> Path:
    wanted = [
        Wanted("r1", cpp("{FAST}"), (cpp("{GOOD}", "// other"),)),
        Wanted("r2", cpp("memset(y, 0, m * n * 4);")),
        Wanted("r3", cpp("{GOOD}", "// third")),
    ]
    write_bundle(tmp_path / "bundle", spec, task, wanted)
    return tmp_path / "bundle"


def test_a_bundle_is_evaluated_and_its_results_read_back(bundle: Path, quick: EvaluatorOptions, cpp: Cpp) -> None:
    said: list[str] = []
    assert evaluate_bundle(bundle, options=quick, tell=said.append) == 3
    found = list(read_results(bundle / "results.jsonl"))
    assert [r.request for r in found] == ["r1", "r2", "r3"]
    first, second = found[0].evaluation, found[1].evaluation
    assert isinstance(first, Evaluation)
    assert isinstance(second, Evaluation)
    assert first.verdict is Verdict.PASSED
    assert first.program_id == cpp("{FAST}").id
    assert list(first.against) == [cpp("{GOOD}", "// other").id]
    assert second.verdict is Verdict.WRONG_VALUES
    assert found[0].record["program"] == first.program_id
    assert said[0] == "3 requested, 0 already done"


def test_a_run_that_was_cut_off_goes_on_where_it_stopped(bundle: Path, quick: EvaluatorOptions) -> None:
    evaluate_bundle(bundle, options=quick, tell=lambda _: None)
    path = bundle / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])  # killed in the middle of a write
    assert [r.request for r in read_results(path)] == ["r1"]
    said: list[str] = []
    assert evaluate_bundle(bundle, options=quick, tell=said.append) == 2
    assert [r.request for r in read_results(path)] == ["r1", "r2", "r3"]
    assert evaluate_bundle(bundle, options=quick, tell=said.append) == 0
    assert path.read_bytes().splitlines(keepends=True)[0] == lines[0]


def test_damage_before_the_last_line_is_named(bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"request": "r1"}\n')
    with pytest.raises(EvaluatorError, match=r"results.jsonl:1: not a result: 'evaluation'"):
        list(read_results(path))


def test_a_changed_program_is_refused(bundle: Path, quick: EvaluatorOptions) -> None:
    path = next((bundle / "programs").iterdir())
    path.write_text(path.read_text().replace("int64_t", "int32_t"))
    with pytest.raises(EvaluatorError, match=r"the file was changed"):
        evaluate_bundle(bundle, options=quick, tell=lambda _: None)


def test_a_folder_that_is_no_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"is no bundle, or is damaged"):
        evaluate_bundle(tmp_path)
    (tmp_path / "x").write_text("x")
    with pytest.raises(EvaluatorError, match=r"is not empty"):
        write_bundle(tmp_path, None, tmp_path, [])  # type: ignore[arg-type]


def test_the_far_side_needs_the_standard_library_and_numpy_only(
    tmp_path: Path, spec: TaskSpec, task: Path, py: Callable[[str], Program]
) -> None:
    base = py("def run(x):\n    return 2 * x + x.mean(axis=1, keepdims=True, dtype='float64').astype('float32')\n")
    write_bundle(tmp_path / "b", replace(spec, baseline=base, workloads=spec.workloads[:1]), task, [
        Wanted("r1", py("def run(x):\n    return x\n"))
    ])  # fmt: skip
    code = (
        f"import sys; sys.path[:0] = {python_paths()!r}\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('pydantic', 'sqlalchemy', 'typer', 'rich', 'torch', 'pydantic_ai'):\n"
        "            raise ImportError(f'{name} must not be needed here')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from ksearch.evaluators.remote import main\n"
        f"sys.exit(main([{str(tmp_path / 'b')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    line = json.loads((tmp_path / "b" / "results.jsonl").read_text())
    assert line["evaluation"]["verdict"] == "wrong_values"
