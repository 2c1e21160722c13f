"""`ksearch verify` in real processes: verdicts, exit codes, and measuring again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from ksearch.certificate import check, seal
from ksearch.errors import BadInput, TaskError
from ksearch.tasks import Task, init_task, load_task
from ksearch.types import Program
from ksearch.verify import Verified, check_task, overlap, repeat, verify
from tests.cli.shell import shell_in
from tests.verify.conftest import QUICK, write
from tests.verify.test_certificate import invent


def spared(step: Callable[[], tuple[str, str]], disturbed: str) -> tuple[str, str]:
    """Again, where other work on this machine spoilt the timing of an honest program."""
    for _ in range(3):
        out, err = step()
        if disturbed not in out:
            break
    return out, err


def test_a_wrong_program_fails_with_workload_and_reason_and_still_gets_a_certificate(
    task: Task, wrong: Program, tmp_path: Path
) -> None:
    shell = shell_in(tmp_path)
    source = tmp_path / "mine.cpp"
    source.write_text(next(iter(wrong.sources.values())))
    # The baseline is timed in any case, and a program named twice is measured once.
    named = ("mine.cpp", "baseline", "baseline", "--task", str(task.folder), "--against", "baseline")
    out, err = spared(lambda: shell.both("verify", *named, "--seconds", "0.3", "-o", "c.json", code=1), "forged at")
    assert "NOT PASSED" in out
    assert "wrong_values" in out
    assert "measuring" in err
    body = check((tmp_path / "c.json").read_bytes())
    assert body["against"] == []
    bad, good = body["results"]
    assert (bad["verdict"], good["verdict"]) == ("wrong_values", "passed")
    assert bad["speedup"] is None
    assert len(body["problems"]) == 1
    assert "wrong_values" in body["problems"][0]
    # The certificate is sound, whatever it says about the program.
    assert "WHOLE AND CONSISTENT" in shell("check-certificate", "c.json")
    assert "REFUSED" in shell("check-certificate", write(tmp_path / "d.json", seal(body)[:-2] + b" }"), code=1)


def test_a_python_program_gets_a_certificate_without_the_control_that_is_timed_beside_it(
    task: Task, tmp_path: Path
) -> None:
    python = init_task(tmp_path / "example", language="python")
    text = (task.folder / "task.toml").read_text()
    text = text.replace('["cpp"]', '["python"]').replace('"cpp"', '"python"').replace("baseline.cpp", "baseline.py")
    (python.folder / "task.toml").write_text(text)
    python = load_task(python.folder)
    done = verify(python, [python.baseline], (), QUICK)
    (result,) = done.body["results"]
    for row in result["workloads"]:
        assert [lane["role"] for lane in row["lanes"]] == (["candidate", "baseline"] if row["lanes"] else [])


def test_the_same_figures_agree_and_invented_ones_do_not(golden: Verified, task: Task) -> None:
    invented = copy.deepcopy(golden.body)
    invent(invented, 100.0)
    failing = copy.deepcopy(golden.body)
    failing["results"][0].update(verdict="hang", speedup=None, workloads=[])
    with (
        mock.patch("ksearch.verify.verify", return_value=golden),  # measured now: as it was then
        mock.patch("ksearch.verify.check_task"),
    ):
        same, other, worse = (repeat(body, task) for body in (golden.body, invented, failing))
    assert same.same_cpu
    assert same.agrees
    assert {row.label for row in same.rows} == {"all workloads", "small", "large", "ragged"}
    assert same.rows[0].then_ms == same.rows[0].now_ms is not None
    assert not other.agrees
    assert not any(row.agrees for row in other.rows)
    assert not worse.agrees
    assert "then hang, now passed" in worse.faults[0]


def test_on_another_cpu_ratios_are_compared_with_a_warning_and_times_are_not(
    verified: Verified, task: Task, tmp_path: Path
) -> None:
    body = copy.deepcopy(verified.body)
    body["machine"]["cpu"] = "Another CPU, model 1"
    shell, file = shell_in(tmp_path), write(tmp_path / "c.json", seal(body))
    arguments = ("verify", "--certificate", file, "--task", str(task.folder), "--seconds", "0.3", "--allowance", "0.6")
    out, _ = spared(lambda: shell.both(*arguments, code=None), "now forged")
    assert "ratios may differ, and times are not compared" in out
    assert "then ms" not in out
    assert "AGREES" in out


def test_a_task_in_another_state_is_refused_with_the_way_out(golden: Verified, task: Task, tmp_path: Path) -> None:
    changed = tmp_path / "example"
    changed.mkdir()
    for path in task.folder.iterdir():
        if path.is_file():
            (changed / path.name).write_bytes(path.read_bytes())
    with (changed / "reference.py").open("a") as file:
        file.write("# later\n")
    with pytest.raises(TaskError, match="--task"):
        check_task(golden.body, load_task(changed))
    message = shell_in(tmp_path).fails(
        "verify", "--certificate", write(tmp_path / "c.json", golden.data), "--task", str(changed), code=2
    )
    assert golden.body["task"]["hash"][:12] in message


@pytest.mark.parametrize(
    ("one", "other", "allowance", "agrees"),
    [
        ((1.0, 1.1), (1.05, 1.2), 0.0, True),
        ((1.0, 1.1), (1.11, 1.2), 0.0, False),
        ((1.0, 1.1), (1.11, 1.2), 0.03, True),
        ((1.0, 1.1), (0.5, 0.9), 0.03, False),
        ((1.0, 1.1), (1.0, 1.1), 0.0, True),
    ],
)
def test_intervals_agree_when_they_share_a_point_once_widened(
    one: tuple[float, float], other: tuple[float, float], allowance: float, agrees: bool
) -> None:
    first, second = ({"low": low, "high": high} for low, high in (one, other))
    assert overlap(first, second, allowance) is agrees
    assert overlap(second, first, allowance) is agrees


def test_bad_command_lines_say_what_is_missing(tmp_path: Path, task: Task, golden: Verified) -> None:
    shell = shell_in(tmp_path)
    file = write(tmp_path / "c.json", golden.data)
    assert "--task" in shell.fails("verify", "x.cpp", code=2)
    assert "no such file" in shell.fails("verify", "x.cpp", "--task", str(task.folder), code=2)
    assert "name no others" in shell.fails("verify", "x.cpp", "--certificate", file, code=2)
    assert "--sandbox" in shell.fails("verify", "baseline", "--task", str(task.folder), "--sandbox", "none", code=2)
    assert "cannot be read" in shell.fails("verify", "--certificate", "none.json", code=2)
    assert "cannot be read" in shell.fails("check-certificate", "none.json", code=2)
    assert "not a JSON file" in shell.fails("verify", "--certificate", write(tmp_path / "e.json", b"{"), code=2)


def test_an_allowance_that_would_let_anything_pass_is_refused(golden: Verified, task: Task) -> None:
    with pytest.raises(BadInput, match="allowance"):
        repeat(golden.body, task, QUICK, allowance=1.0)


def test_json_output_is_for_programs(golden: Verified, tmp_path: Path) -> None:
    shell = shell_in(tmp_path)
    found = shell.json("check-certificate", write(tmp_path / "c.json", golden.data))
    assert found["ok"]
    assert found["sha256"] == golden.body["sha256"]
    assert "lanes" not in json.dumps(found)
    found = shell.json("check-certificate", write(tmp_path / "d.json", b"{}\n"), code=1)
    assert not found["ok"]


def test_a_program_may_be_a_source_a_json_file_or_a_folder(task: Task, slow: Program, tmp_path: Path) -> None:
    from ksearch.programs import named_program

    (name,) = slow.sources
    source = tmp_path / name
    source.write_bytes(slow.sources[name].rstrip("\n").replace("\n", "\r\n").encode())
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps({"id": slow.id, **json.loads(slow.canonical)}))
    folder = tmp_path / "best"
    folder.mkdir()
    (folder / "program.json").write_bytes(slow.canonical)
    for given in (source, whole, folder):
        assert named_program(str(given), task).id == slow.id
    assert named_program("baseline", task) == task.baseline


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.rs", b"fn", "suffix"),
        ("a.json", b"[]", "no program"),
        ("a.json", b'{"sources": {}}', "no program"),
        ("a.cpp", b"\xff", "UTF-8"),
        ("folder", None, "program.json"),
    ],
)
def test_what_is_no_program_is_named(task: Task, tmp_path: Path, name: str, content: bytes | None, word: str) -> None:
    from ksearch.programs import named_program

    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(BadInput, match=word):
        named_program(str(path), task)
