"""What lint says of a reference that raises, lies, hangs or judges nothing. Each runs in a real child process."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from ksearch.lint import LintReport, Row, Status, lint, lint_folder
from ksearch.tasks import load_task

Y = "    y = gate / (1 + np.exp(-gate)) * up\n"
RETURN = 'return {"y": y, "peak": np.abs(y).max(axis=1)}'


def row(report: LintReport, check: str) -> Row:
    found = [r for r in report.rows if r.check == check]
    assert len(found) == 1, f"{check} is {len(found)} times in\n{report}"
    return found[0]


def test_a_new_task_passes_every_check(folder):
    report = lint(load_task(folder))
    assert report.ok, str(report)
    assert {r.status for r in report.rows} == {Status.OK, Status.SKIPPED}
    assert row(report, "depends on up").detail == "seen on 5 of 5 workloads"
    assert row(report, "refuses twice the tolerance in peak").status is Status.OK


# (old text of reference.py, new text, the row that fails, what it says, what its cure says)
MISTAKES = {
    "raises": (Y, Y + "    raise ArithmeticError('oh')\n", "reference runs",
               r"reference\(\) raised ArithmeticError: oh \(reference.py:21: raise", "Correct that line"),
    "exits": (Y, Y + "    raise SystemExit(0)\n", "reference runs", r"raised SystemExit: 0", "Correct that line"),
    "does not import": ("import numpy as np\n", "import numpy as np\nimport nonsense\n", "reference loads",
                        r"ModuleNotFoundError: No module named 'nonsense' \(reference.py:6", "Correct that line"),
    "gives NaN": (RETURN, f"y[0, 0] = np.nan\n    {RETURN}", "reference is finite",
                  r"y of workload 'small' has NaN, first at \[0, 0\]", "special case"),
    "is random": (Y, Y + "    y = y + np.random.random()\n", "reference is deterministic",
                  "another y for the same inputs", "Remove random numbers"),
    "random inputs": ("(2 * rng.standard_normal(shape))", "(2 * np.random.standard_normal(shape))",
                      "reference is deterministic", "another gate for the same seed", "from the rng"),
    "changes its input": (Y, Y + '    inputs["up"][:] = 0\n', "reference is deterministic",
                          "changes its input up", "copy"),
    "returns a list": (RETURN, "return [y]", "reference runs", r"reference\(\) returned list", "Return a dict"),
    "forgets an output": (RETURN, 'return {"y": y}', "reference runs", "did not return 'peak'", "Return a dict with"),
    "invents an output": (RETURN, RETURN.replace("}", ', "z": y}'), "reference runs", "also returned 'z'", "declares"),
    "wrong shape": (RETURN, RETURN.replace("axis=1", "axis=0"), "reference runs",
                    r"peak has shape \(512,\) for .*'rows': 64.*declared \(64,\)", "task.toml"),
    "wrong input dtype": ("rng.standard_normal(shape).astype(np.float32),\n    }", "rng.standard_normal(shape),\n    }",
                          "reference runs", "up is float64, declared float32", r"astype\(np.float32\)"),
    "ignores an input": (Y, "    y = gate / (1 + np.exp(-gate))\n", "depends on up",
                         "ignores the values of up would pass", "matters"),
    "constant input": ('"up": rng.standard_normal(shape)', '"up": np.ones(shape)', "depends on up",
                       "the same up for every seed", "from the rng"),
    "an awkward case with NaN": ('steep["gate"] *= 15', 'steep["gate"][0] = np.nan', "awkward cases",
                                 "awkward case 0.*has NaN", "special case"),
    "awkward without a list": ("return [steep]", "return steep", "awkward cases", r"returned dict", "list of dicts"),
    "fails on one row only": (Y, Y + '    assert axes["cols"] in (512, 601, 99, 1, 3)\n', "unseen shapes",
                              "AssertionError", "Correct that line"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_reference_fails_one_row_with_a_cure(mistake, folder, edit):
    old, new, check, detail, cure = MISTAKES[mistake]
    edit(old, new, "reference.py")
    report = lint(load_task(folder))
    failed = row(report, check)
    assert not report.ok
    assert failed.status is Status.FAIL
    assert re.search(detail, failed.detail), failed.detail
    assert re.search(cure, failed.cure), failed.cure


def test_a_reference_in_single_precision_is_noted_not_refused(folder, edit):
    edit(RETURN, 'return {"y": y.astype(np.float32), "peak": np.abs(y).max(axis=1)}', "reference.py")
    report = lint(load_task(folder))
    assert report.ok
    assert row(report, "reference is precise").status is Status.NOTE
    assert "y in float32" in row(report, "reference is precise").detail


def test_outputs_near_zero_are_found_by_the_impostors(folder, edit):
    """The values vanish beside atol: zeros, a constant and half of the work left out would all pass."""
    edit("(2 * rng.standard_normal(shape))", "(1e-9 * rng.standard_normal(shape))", "reference.py")
    report = lint(load_task(folder))
    assert row(report, "refuses zeros in y").status is Status.OK, "norm still tells"
    edit("norm = 1e-5", "norm = 0.99")
    edit("rtol = 1e-4", "rtol = 0.99")
    report = lint(load_task(folder))
    for flaw in ("the last column wrong", "the last row left zero"):
        found = row(report, f"refuses {flaw} in y")
        assert found.status is Status.FAIL
        assert "Tighten the tolerance for float32" in found.cure


def test_a_floor_above_what_the_arrays_hold_is_refused(folder, edit):
    edit('"4 * (3 * rows * cols + rows)"', '"4 * (4 * rows * cols + rows)"')
    found = row(lint(load_task(folder)), "floor is possible")
    assert found.status is Status.FAIL
    assert "Count each array once" in found.cure


def test_an_endless_reference_is_stopped_and_named(folder, edit):
    edit(
        Y, "    import subprocess, sys\n    subprocess.Popen(['sleep', '1000'])\n    while True: pass\n", "reference.py"
    )
    start = time.monotonic()
    report = lint(load_task(folder), probe_limit_s=2.0)
    assert time.monotonic() - start < 20
    found = row(report, "reference runs")
    assert (found.status, found.detail) == (Status.FAIL, "not done after 2 s")
    assert "endless loop" in found.cure
    assert not _children_named("sleep 1000"), "what the reference started is still there"


def _children_named(command: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode().strip()
            state = (path.parent / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if words == command and state != "Z":
            found.append(path.parent.name)
    return found


def test_a_reference_that_kills_its_process_is_named(folder, edit):
    edit(Y, Y + "    import os; os._exit(3)\n", "reference.py")
    found = row(lint(load_task(folder)), "reference runs")
    assert (found.status, found.detail) == (Status.FAIL, "the process ended: exit status 3")


def test_output_of_the_reference_is_not_taken_for_a_row(folder, edit):
    forged = """    print('{"row": {"check": "forged", "status": "ok"}}' * 20000)\n"""
    edit(Y, Y + forged + "    import sys; print('x' * 200000, file=sys.stderr)\n", "reference.py")
    report = lint(load_task(folder))
    assert report.ok, str(report)
    assert all(r.check != "forged" for r in report.rows)


def test_a_folder_that_does_not_load_is_a_row_too(folder, edit):
    edit("[floor]", "[flor]")
    seen: list[Row] = []
    report = lint_folder(folder, on_row=seen.append)
    assert not report.ok
    assert list(report.rows) == seen
    assert "unknown key" in report.rows[0].detail or "missing" in report.rows[0].detail


def test_the_report_reads_as_lines_with_cures(folder, edit):
    edit(RETURN, 'return {"y": y}', "reference.py")
    text = str(lint(load_task(folder)))
    assert "fail    reference runs: reference() did not return 'peak'\n        cure: Return a dict" in text
    assert "skipped programs and impostors" in text


def test_no_descriptor_is_left_open(folder):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    lint(load_task(folder))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
