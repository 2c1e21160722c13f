"""Evaluation elsewhere, from the shell: a folder out, a results file back."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from ksearch.errors import BadInput
from ksearch.evaluators.bundle import Wanted, evaluate_bundle, read_results
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.service.bundling import make_bundle, sources
from ksearch.tasks import Task
from ksearch.types import Program
from tests.cli.shell import Shell, shell_in

SHORT = EvaluatorOptions(time_budget_s=0.1, confirm=False)
PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Another loop", "value": 0.9}]})


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has NumPy and nothing else."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False, symlinks=True)
    spec = importlib.util.find_spec("numpy")
    assert spec is not None
    assert spec.origin is not None
    site = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for folder in Path(spec.origin).parents[1].glob("numpy*"):
        leave_out = shutil.ignore_patterns("tests", "__pycache__", "*.pyi", "*.a")
        shutil.copytree(folder, site / folder.name, ignore=leave_out)
    return str(home / "bin" / "python")


def waiting(shell: Shell, task: Task, *programs: Program) -> None:
    """A run `a` in which these programs wait to be measured."""
    shell("new", "--name", "a", "--task", str(task.folder), "--evaluations", "4", KSEARCH_WIDTH=str(len(programs)))
    shell("ask", "a")
    shell("tell", "a", "r0", "-", stdin=PLAN)
    for program in programs:
        request = shell.json("ask", "a", "--kind", "write")["id"]
        (text,) = program.sources.values()
        shell("tell", "a", request, "-", stdin=f"```cpp\n{text}```\n")


def program_ids(bundle: Path) -> list[str]:
    return [json.loads(line)["program"] for line in (bundle / "requests.jsonl").read_text().splitlines()]


def test_a_run_is_measured_where_only_python_and_numpy_are_and_goes_on_with_the_results(
    shell: Shell, task: Task, slow: Program, wrong: Program, bare_python: str
) -> None:
    waiting(shell, task, slow, wrong)
    assert shell.json("bundle", "a", "-o", "out") == {"folder": str(shell.folder / "out"), "requests": 2, "run": "a"}
    out = shell.folder / "out"
    for module in ("pydantic", "sqlalchemy", "typer", "rich"):
        assert subprocess.run([bare_python, "-c", f"import {module}"], capture_output=True).returncode == 1
    done = subprocess.run(
        [bare_python, "-I", str(out / "evaluate.py"), "-o", "back.jsonl"],
        cwd=shell.folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=170,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 requested, 0 already done" in done.stdout
    assert "wrong_values" in done.stdout
    back = shell.folder / "back.jsonl"
    text = shell("tell", "a", "--results", "back.jsonl")
    assert "2 taken" in text
    assert "2 duplicate" in shell("tell", "a", "--results", "back.jsonl")
    events = [json.loads(line) for line in shell("show", "a", "--events", "--json").splitlines()]
    told = [e["evaluation"] for e in events if e["type"] == "evaluated"]
    found = {r.program_id: r for r in read_results(back)}
    assert {e["program_id"]: e["verdict"] for e in told} == {id: r.evaluation.verdict for id, r in found.items()}
    assert found[wrong.id].evaluation.verdict == "wrong_values"
    holders = {e["holder"]["name"] for e in events if e["type"] == "leased" and e["request_id"] in ("r3", "r4")}
    assert holders == {"bundle"}
    # The whole record is kept, by its hash.
    assert all(len(e["record"]) == 64 for e in told)
    assert found[slow.id].record["timing"]


def test_what_is_out_is_not_handed_out_again_unless_said_so(shell: Shell, task: Task, slow: Program) -> None:
    waiting(shell, task, slow)
    assert shell.json("bundle", "a", "-o", "one")["requests"] == 1
    assert shell.json("bundle", "a", "-o", "two", code=1)["folder"] is None
    assert not (shell.folder / "two").exists()
    assert shell.json("bundle", "a", "-o", "two", "--again")["requests"] == 1
    assert program_ids(shell.folder / "one") == program_ids(shell.folder / "two")


def test_a_folder_that_cannot_be_used_takes_nothing_out_of_the_run(shell: Shell, task: Task, slow: Program) -> None:
    waiting(shell, task, slow)
    (shell.folder / "full").mkdir()
    (shell.folder / "full" / "mine.txt").write_text("mine")
    assert "not empty" in shell.fails("bundle", "a", "-o", "full", code=2)
    (shell.folder / "file").write_text("")
    assert "file" in shell.fails("bundle", "a", "-o", "file/out", code=2)
    assert "-o" in shell.fails("bundle", "a", code=2)
    assert shell.json("bundle", "a", "-o", "out")["requests"] == 1
    assert sorted(p.name for p in shell.folder.iterdir() if p.name.startswith(".")) == []


@pytest.fixture(scope="session")
def results(task: Task, slow: Program, wrong: Program, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a results file with both programs, really measured."""
    folder = tmp_path_factory.mktemp("bundle") / "out"
    make_bundle(folder, task, [Wanted("r3", slow), Wanted("r4", wrong)])
    evaluate_bundle(folder, options=SHORT, tell=lambda _: None)
    return (folder / "results.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture
def measured(shell: Shell, task: Task, slow: Program, wrong: Program, results: list[bytes]) -> list[bytes]:
    """The same, and a run `a` that waits for them."""
    waiting(shell, task, slow, wrong)
    assert shell.json("bundle", "a", "-o", "out")["requests"] == 2
    return results


def put(shell: Shell, *lines: bytes) -> str:
    (shell.folder / "r.jsonl").write_bytes(b"".join(lines))
    return "r.jsonl"


def fates(shell: Shell, file: str, code: int = 0) -> list[str]:
    return [row["fate"] for row in shell.json("tell", "a", "--results", file, code=code)["results"]]


def changed(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def test_partial_files_and_torn_lines_are_taken_as_far_as_they_go(shell: Shell, measured: list[bytes]) -> None:
    one, two = measured
    assert fates(shell, put(shell)) == []
    assert fates(shell, put(shell, one, two[:-40])) == ["taken"]
    assert fates(shell, put(shell, one, two)) == ["duplicate", "taken"]


def test_results_of_unknown_programs_and_other_tasks_are_named_and_not_taken(
    shell: Shell, measured: list[bytes], task: Task
) -> None:
    one, two = measured
    body = json.loads(one)
    foreign = changed(one, program="f" * 64, evaluation={**body["evaluation"], "program_id": "f" * 64}, request="x9")
    assert fates(shell, put(shell, foreign), code=1) == ["unknown"]
    assert "ffffffffffff unknown" in shell("tell", "a", "--results", "r.jsonl", code=1)
    other = changed(one, record={**body["record"], "task_hash": "0" * 64})
    assert fates(shell, put(shell, other), code=1) == ["refused"]
    bare = changed(one, record={**body["record"], "disabled_defences": ["floor"]})
    assert fates(shell, put(shell, bare), code=1) == ["refused"]
    swapped = changed(one, evaluation=json.loads(two)["evaluation"])
    assert fates(shell, put(shell, swapped), code=1) == ["refused"]
    # A result answers by its program, whatever request it was made for.
    assert fates(shell, put(shell, changed(one, request="r77"), two)) == ["taken", "taken"]


def test_what_was_lost_is_asked_again_and_a_later_result_of_it_counts(shell: Shell, measured: list[bytes]) -> None:
    one, two = measured
    body = json.loads(one)
    lost = json.dumps({**{k: body[k] for k in ("request", "program")}, "lost": "no power", "record": {}}).encode()
    assert fates(shell, put(shell, lost + b"\n")) == ["lost"]
    assert shell.json("bundle", "a", "-o", "more")["requests"] == 1
    assert fates(shell, put(shell, lost + b"\n", one, two)) == ["taken", "taken"]


def test_a_damaged_line_is_named_and_nothing_is_recorded(shell: Shell, measured: list[bytes]) -> None:
    for line in (b"{}", b"\xff", b"[]", b"null", b'{"request": "r1"}', b"[" * 9999):
        message = shell.fails("tell", "a", "--results", put(shell, measured[0], line + b"\n"), code=2)
        assert "r.jsonl:2" in message
    assert fates(shell, put(shell, *measured)) == ["taken", "taken"]


def test_evaluation_goes_on_where_it_was_cut_off(task: Task, slow: Program, tmp_path: Path) -> None:
    bundle, said = tmp_path / "b", list[str]()
    make_bundle(bundle, task, [Wanted("x", slow), Wanted("y", task.baseline)])
    assert evaluate_bundle(bundle, options=SHORT, tell=said.append) == 2
    results = bundle / "results.jsonl"
    whole = results.read_bytes()
    first = whole.index(b"\n") + 1
    results.write_bytes(whole[: first + 100])
    assert evaluate_bundle(bundle, options=SHORT, tell=said.append) == 1
    assert results.read_bytes()[:first] == whole[:first]
    assert [r.request for r in read_results(results)] == ["x", "y"]
    assert evaluate_bundle(bundle, options=SHORT, tell=said.append) == 0
    lost = json.dumps({"request": "x", "program": slow.id, "lost": "no power", "record": {}}).encode() + b"\n"
    results.write_bytes(lost + whole[first:])
    assert evaluate_bundle(bundle, options=SHORT, tell=said.append) == 1


def test_programs_without_a_run(shell: Shell, task: Task, slow: Program) -> None:
    (shell.folder / "slow.cpp").write_text(next(iter(slow.sources.values())))
    shell(
        "bundle", "--task", str(task.folder), "slow.cpp", "slow.cpp", "baseline", "--against", "baseline", "-o", "out"
    )
    assert len(program_ids(shell.folder / "out")) == 2
    assert "name the programs" in shell.fails("bundle", "--task", str(task.folder), "-o", "x", code=2)
    assert "--task" in shell.fails("bundle", "a", "--against", "baseline", "-o", "x", code=2)
    assert "no bundle" in shell.fails("evaluate", "x", code=2)
    assert "cannot be written" in shell.fails("evaluate", "out", "-o", "/proc/none/r.jsonl", code=2)
    (shell.folder / "out" / "requests.jsonl").write_text("{}\n")
    assert "damaged" in shell.fails("evaluate", "out", code=6)


def test_the_sources_of_a_bundle_are_few_and_none_needs_a_library() -> None:
    names = {path.name for path in sources()}
    assert {"local.py", "types.py", "definition.py", "harness.cpp", "remote.py"} <= names
    assert not {"search.py", "codec.py", "config.py", "sql.py"} & names


def test_a_place_that_cannot_be_made_is_bad_input(task: Task, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        make_bundle(tmp_path / "file" / "out", task, [Wanted("x", task.baseline)])
