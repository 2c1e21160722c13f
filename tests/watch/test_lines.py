"""`ksearch watch` where there is no terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell, shell_in


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    found = shell_in(tmp_path_factory.mktemp("watch"))
    found("run", "--model", "fake:1", "--name", "fake-1", "--evaluations", "6", "--quiet")
    return found


def test_plain_lines_tell_the_whole_run_and_end_with_it(shell: Shell) -> None:
    lines = shell("watch", "fake-1").splitlines()
    assert lines[-1].startswith("run fake-1 ended: budget: evaluations; best: ")
    assert any("[6/6] ended: budget: evaluations" in line for line in lines)
    assert sum("passed: program" in line or "new best" in line for line in lines) >= 1


def test_json_gives_every_event(shell: Shell) -> None:
    events = [json.loads(line) for line in shell("watch", "fake-1", "--json").splitlines()]
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "ended"


def test_quiet_prints_the_result_only(shell: Shell) -> None:
    assert len(shell("watch", "fake-1", "--quiet").splitlines()) == 1


def test_an_exported_run_that_has_not_ended_is_shown_to_its_end(tmp_path: Path) -> None:
    shell = shell_in(tmp_path)
    shell("new", "--name", "begun", "--evaluations", "3")
    shell("export", "begun", "-o", "begun.jsonl")
    assert "has not ended; best: no program passed" in shell("watch", "begun.jsonl", code=1)


def test_an_unknown_run_is_one_message(shell: Shell) -> None:
    assert "nothing" in shell.fails("watch", "nothing", code=3)
