"""Help, exit codes, and what becomes of an error that nobody foresaw."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from ksearch import errors
from ksearch.cli import boundary
from ksearch.cli.main import app
from tests.cli.shell import Shell

COMMANDS = [c.name or c.callback.__name__.replace("_", "-") for c in app.registered_commands if c.callback]


def test_every_command_has_an_example_in_its_help(shell: Shell) -> None:
    for name in (*COMMANDS, "command"):
        out = shell(name, "--help")
        assert re.search(rf"Examples?:\n +ksearch {name}\b", out), out
    assert set(COMMANDS) >= {"runs", "show", "resume", "ask", "tell", "submit", "new", "run"}


def test_every_error_class_has_its_exit_code() -> None:
    codes = {
        cls.__name__: boundary.exit_code(cls("x", 1) if cls is errors.Conflict else cls("x"))
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.KSearchError)
    }
    expected = {"ConfigError": 2, "TaskError": 2, "Corrupt": 3, "UnknownRun": 3, "InvalidReply": 4, "Unavailable": 5}
    assert {name: codes[name] for name in expected} == expected


def test_mistakes_in_the_command_line_say_where_help_is(shell: Shell) -> None:
    assert "Did you mean 'ask'" in shell.fails("aks", code=2)
    _, err = shell.both("new", "--evaluations", "many", code=2)
    assert "See `ksearch new --help`" in err
    assert "--kind dance" in shell.fails("ask", "--kind", "dance", code=2)
    assert "[RUN] REQUEST FILE" in shell.fails("tell", "r1", code=2)


def test_unforeseen_error_is_one_line_and_its_details_go_into_a_file(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def breaks() -> None:
        raise ZeroDivisionError("of course")

    assert boundary.guarded(breaks) == boundary.UNEXPECTED
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    named = re.search(r"details are in (\S+\.txt)", err)
    assert named
    text = Path(named[1]).read_text()
    Path(named[1]).unlink()
    assert "in breaks" in text
    monkeypatch.setenv("KSEARCH_DEBUG", "1")
    boundary.guarded(breaks)
    assert "in breaks" in capsys.readouterr().err


def test_ctrl_c_once_finishes_the_step_and_names_the_way_on(shell: Shell) -> None:
    noted = {"KSEARCH_FAKE_CALLS": str(shell.folder / "calls"), "KSEARCH_FAKE_MS": "40"}
    driver = shell.start("run", "--name", "a", "--json", KSEARCH_MODEL="fake", **noted)
    assert driver.stdout
    driver.stdout.readline()
    time.sleep(0.1)
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130, err
    assert "stopping when what is at work now is done" in err
    assert "ksearch resume a" in err
    shell("command", "a", "budget", "--evaluations", "9")
    assert "budget: evaluations" in shell("resume", "a", **noted)
    calls = (shell.folder / "calls").read_text().splitlines()
    assert len(calls) == len(set(calls))  # the step had been finished: no call was made twice
