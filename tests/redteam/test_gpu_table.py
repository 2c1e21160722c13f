"""The GPU rows, as far as they can be checked without a GPU; tests/gpu/test_redteam.py measures them."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ksearch.evaluators.defences import Defence
from ksearch.redteam.cheat import GPU_CHEATS, HELPERS, Cheat
from ksearch.redteam.gpu import measured
from ksearch.redteam.gpu.spec import FOLDER, VARIANTS, variant
from ksearch.redteam.gpu.table import CHEATS
from ksearch.redteam.report import faults, state, summary
from ksearch.redteam.suite import Row, Seen, run_redteam
from ksearch.redteam.table import CHEATS as CPU_CHEATS
from ksearch.types import Verdict

every_cheat = pytest.mark.parametrize("cheat", CHEATS, ids=lambda c: c.name)


def test_every_file_is_in_the_table_once_and_no_name_is_that_of_a_cpu_cheat() -> None:
    helpers = {name for names in HELPERS.values() for name in names}
    files = [cheat.file for cheat in CHEATS]
    assert len(set(files)) == len(files)
    assert {p.name for p in GPU_CHEATS.iterdir() if p.is_file()} - helpers == set(files)
    assert not {c.name for c in CHEATS} & {c.name for c in CPU_CHEATS}
    assert {c.language for c in CHEATS} == {"python", "triton", "cuda"}


@every_cheat
def test_a_twin_differs_in_the_switch_alone(cheat: Cheat) -> None:
    mine, twins = cheat.source.splitlines(), cheat.program(twin=True).sources[cheat.file].splitlines()
    only_mine = [line for line in mine if line not in twins]
    assert all("CHEAT" in line or line.endswith("# cheat only") for line in only_mine)
    assert [line for line in twins if line not in mine] in (["CHEAT = False"], ["#define CHEAT 0"])


@every_cheat
def test_a_cheat_names_its_defence_or_says_what_else_stops_it(cheat: Cheat) -> None:
    assert bool(cheat.defences) != bool(cheat.because)
    assert set(cheat.defences) <= set(Defence)
    assert cheat.what.endswith((".", ")", "?"))
    assert (Verdict.PASSED in cheat.verdicts) <= (cheat.saves or cheat.steals)
    assert cheat.variant in VARIANTS


@every_cheat
def test_a_program_holds_all_that_it_uses(cheat: Cheat) -> None:
    program = cheat.program()
    for path, text in program.sources.items():
        if path.endswith(".py"):
            imported = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
            assert {f"{m}.py" for m in imported if m and m.startswith("honest")} <= set(program.sources)
        elif path.endswith(".cu"):
            assert "honest.cuh" in program.sources


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_task_is_sound(name: str) -> None:
    spec = variant(name)
    assert spec.device == "cuda"
    assert (FOLDER / "reference.py").is_file()
    assert all(spec.domain[axis].max >= size for w in spec.workloads for axis, size in w.axes.items())


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
def test_cuda_cheats_and_their_twins_compile(tmp_path: Path) -> None:
    """All in one unit: each in a name space of its own, its entry renamed."""
    parts = ['#include <map>\n#include "honest.cuh"\n']
    for number, program in enumerate(c.program(twin=t) for c in CHEATS if c.language == "cuda" for t in (False, True)):
        for path, text in program.sources.items():
            (tmp_path / (f"{number}.cu" if path.endswith(".cu") else path)).write_text(text)
        body = f'namespace n{number} {{\n#include "{number}.cu"\n}}\n'
        parts.append(f"#undef KEPT\n#undef CHEAT\n#define run run_{number}\n{body}#undef run\n")
    (tmp_path / "all.cu").write_text("".join(parts))
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-O0", "-Werror", "all-warnings", "-c", "all.cu", "-o", "all.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_was_seen_is_of_known_rows_and_says_what_is_missing() -> None:
    rows = measured.load()["rows"]
    assert set(rows) <= {cheat.name for cheat in CHEATS}
    assert measured.unseen({}) == [f"{c.name}, {part}" for c in CHEATS for part in measured.parts(c)]
    assert all(text in measured.markdown() for text in measured.unseen(rows))


def test_a_row_that_was_left_out_is_neither_right_nor_wrong() -> None:
    left_out, right = Row(CHEATS[0], skipped="needs a GPU"), Row(CHEATS[1], Seen(True, "wrong_values"))
    assert left_out.left_out
    assert not left_out.ok
    assert (state(left_out), state(right)) == ("-", "ok")
    assert faults([left_out, right]) == []
    assert summary([left_out, right]) == [
        "1 of 1 rows are as they have to be", "1 rows were left out and show nothing: each needs a GPU",
    ]  # fmt: skip


def test_without_a_gpu_the_rows_are_left_out_and_the_exit_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ksearch.redteam.suite._no_gpu", lambda: "needs an NVIDIA GPU, and torch")
    (row,) = run_redteam(["gpu-zeros"])
    assert row.left_out
    command = [sys.executable, "-c", (
        "import sys; from ksearch.redteam import suite; suite._no_gpu = lambda: 'needs a GPU'\n"
        "from ksearch.cli.redteam import redteam; sys.exit(redteam(['gpu-zeros'], True, False))"
    )]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, "nothing was shown, so nothing is well"
    assert "0 of 0 rows" in done.stdout
    assert "1 rows were left out" in done.stdout
