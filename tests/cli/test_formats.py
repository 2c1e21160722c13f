"""Tasks in other formats at the command line, and programs on their way out."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

from tests.cli.shell import Shell
from tests.cli.test_hand import PLAN, code, evaluation

EXAMPLES = Path(__file__).parents[2] / "examples" / "formats"


def _solved(shell: Shell, task: str) -> str:
    """A run called `a` with one program that passed; its id."""
    shell("new", "--name", "a", "--evaluations", "1", "--task", task)
    shell("ask")
    shell("tell", "r0", "-", stdin=PLAN)
    shell("ask")
    shell("tell", "r1", "-", stdin=code(1))
    program = str(shell.json("ask", "--kind", "evaluate")["program_id"])
    shell("tell", "r2", "-", stdin=evaluation(program, 1.5))
    return program


def test_a_run_on_a_definition_goes_out_as_its_solution(shell: Shell) -> None:
    program = _solved(shell, f"{EXAMPLES / 'flashinfer_bench'}:gated_norm_h96")
    made = shell.json("export-kernel", "a", "--to", "flashinfer-bench", "-o", "out", "--author", "me")
    assert (made["program"], made["task"], made["notes"]) == (program, "gated_norm_h96", [])
    solution = json.loads((shell.folder / made["files"][0]).read_text())
    assert (solution["definition"], solution["author"]) == ("gated_norm_h96", "me")
    assert "already" not in shell("export-kernel", "a", "--to", "torch-op", "-o", "op", "--program", program[:8])
    assert "not empty" in shell.fails("export-kernel", "a", "--to", "torch-op", "-o", "op", code=2)


def test_a_source_file_goes_out_with_a_word_that_nothing_was_measured(shell: Shell) -> None:
    source = EXAMPLES / "kernelbench/softsign_rows.cpp"
    place = EXAMPLES / "kernelbench/level1_softsign_rows.py"
    out = shell("export-kernel", str(source), "--task", str(place), "--to", "gpu-mode", "-o", "out")
    assert "nothing was measured: ksearch verify" in out
    ast.parse((shell.folder / "out/submission.py").read_text())
    assert "which task is it for" in shell.fails("export-kernel", str(source), "--to", "gpu-mode", code=2)
    assert "--to must be one of flashinfer-bench" in shell.fails("export-kernel", "--to", "onnx", code=2)


def test_a_foreign_task_is_written_out_and_linted(shell: Shell) -> None:
    shutil.copytree(EXAMPLES, shell.folder / "formats")
    out = shell("init", "mine", "--from", "formats/flashinfer_bench:paged_mean_d32_ps4", "--device", "cpu")
    assert "task paged_mean_d32_ps4 in mine" in out
    assert "leave out --name" in shell.fails("init", "x", "--from", "formats/gpu_mode/soft_cap", "--name", "x", code=2)
    found = shell.json("lint", "formats/flashinfer_bench", "--reference-only", code=None)
    assert [t["task"] for t in found["tasks"]] == ["gated_norm_h96", "paged_mean_d32_ps4"]
