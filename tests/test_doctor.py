"""The doctor really tries things, and names path and cure where one does not work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import pytest

from ksearch.doctor import Health, Line, can_evaluate, evaluating, places, software
from ksearch.evaluators import lease, machine
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.store import open_store
from tests.cli.shell import Shell, shell_in


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


def test_whole_examination_of_this_machine(shell: Shell) -> None:
    """The tests need a machine that can evaluate, so the doctor has to say so."""
    found = json.loads(shell("doctor", "--json", code=None))
    lines = {line["name"]: line for line in found["lines"]}
    busy = "Other work disturbs the timing" in lines["evaluation"]["cure"]
    assert found["ok"] or busy
    assert [line for line in found["lines"] if line["health"] == "fail" and line["name"] != "evaluation"] == []
    assert {"python", "numpy", "compiler", "cores", "clock", "memory", "sandbox", "sqlite", "store"} <= set(lines)
    assert "compiled and ran a kernel" in lines["compiler"]["detail"]
    assert busy or "passed" in lines["evaluation"]["detail"]
    assert lines["sandbox"]["detail"].startswith("level ")
    assert str(shell.folder / "runs.db") in lines["store"]["detail"]
    assert not (shell.folder / "runs.db").exists()
    for line in found["lines"]:
        assert bool(line["cure"]) == (line["health"] != "ok"), line


def test_without_a_compiler_the_exit_code_says_that_nothing_can_be_measured(shell: Shell) -> None:
    out = shell("doctor", "--quick", code=1, PATH="/nowhere")
    assert "fail  compiler: no g++ in PATH=/nowhere" in out
    assert "cure: Install one" in out
    assert "DOES NOT WORK" in out
    assert "evaluation: task" not in out


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_compiler_that_fails_or_makes_wrong_code_is_found_by_using_it(tmp_path: Path) -> None:
    def only(options: EvaluatorOptions) -> Line:
        return next(line for line in software.compilers(options) if line.name == "compiler")

    broken = script(tmp_path / "broken++", 'echo "broken++ 1.0"; [ "$1" = --version ] || { echo no room >&2; exit 1; }')
    line = only(EvaluatorOptions(compiler=str(broken)))
    assert (line.health, line.needed) == (Health.FAIL, True)
    assert "cannot compile a kernel: no room" in line.detail
    assert str(broken) in line.detail
    idle = script(tmp_path / "idle++", 'echo "idle++ 1.0"; [ "$1" = --version ] && exit; shift $(($# - 1)); : > "$1"')
    assert "cannot run a kernel" in only(EvaluatorOptions(compiler=str(idle))).detail
    flags = (*EvaluatorOptions().compiler_flags, "-fno-such-flag")
    assert "no-such-flag" in only(EvaluatorOptions(compiler_flags=flags)).detail


def test_keys_are_named_and_never_shown() -> None:
    lines = list(software.models({"OPENAI_API_KEY": "sk-secret", "XAI_API_KEY": ""}))
    text = str(lines)
    assert "OPENAI_API_KEY" in text
    assert "sk-secret" not in text
    assert "set: OPENAI_API_KEY'" in text
    none = list(software.models({}))[-1]
    assert (none.health, none.needed) == (Health.WARN, False)
    assert "ANTHROPIC_API_KEY" in none.cure


def test_a_sqlite_that_can_damage_a_database_is_named() -> None:
    import sqlite3

    assert software.sqlite().health is Health.OK
    with mock.patch("ksearch.store.sqlite.sound_module", return_value=(sqlite3, False)):
        line = software.sqlite()
    assert line.health is Health.WARN
    assert "WAL-reset" in line.detail
    assert "pysqlite3" in line.cure


def test_store_that_is_there_to_be_made_or_impossible(tmp_path: Path) -> None:
    assert "to be made" in places.store(str(tmp_path / "new" / "runs.db")).detail
    assert not (tmp_path / "new").exists()
    path = tmp_path / "runs.db"
    open_store(str(path)).close()
    assert (places.store(str(path)).health, "0 runs" in places.store(str(path)).detail) == (Health.OK, True)
    path.write_bytes(b"no database at all, whatever its name says\n" * 100)
    bad = [
        places.store(str(path)),
        places.store("/proc/none/runs.db"),
        places.store(str(path / "below" / "runs.db")),
        places.store("postgresql://user:secret@127.0.0.1:1/none"),
    ]
    for line in bad:
        assert line.health is Health.FAIL
        assert "--store" in line.cure
        assert "secret" not in str(line)
    assert can_evaluate(bad)  # measuring needs no store


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with mock.patch.object(machine, "cache_folder", return_value=tmp_path / "file" / "cache"):
        line = places.cache()
    assert (line.health, str(tmp_path / "file") in line.detail) == (Health.WARN, True)
    assert "XDG_CACHE_HOME" in line.cure
    with mock.patch("tempfile.gettempdir", return_value="/proc"):
        line = places.temporary()
    assert (line.health, line.needed, "TMPDIR" in line.cure) == (Health.FAIL, True, True)
    with mock.patch("shutil.disk_usage", return_value=mock.Mock(free=1 << 20)):
        assert places.temporary().health is Health.FAIL
        assert places.cache().health is Health.WARN


def test_a_timing_lock_that_is_held_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        mock.patch.object(places, "default_path", return_value=path),
        mock.patch.object(lease, "default_path", return_value=path),
    ):
        assert places.lease().health is Health.OK
        with timing_lease(path):
            line = places.lease()
        assert (line.health, str(path) in line.detail) == (Health.WARN, True)


def test_each_missing_rung_of_the_sandbox_is_named_with_its_cure() -> None:
    with mock.patch.object(evaluating, "_climb", return_value=["session", "limits", "landlock", "seccomp"]):
        lines = list(evaluating.sandbox())
    assert "level landlock" in lines[0].detail
    names = {line.name for line in lines}
    assert {"sandbox pid_ns", "sandbox net_ns", "sandbox mount_ns"} <= names
    assert ("sandbox uid" in names) == (os.geteuid() == 0)
    assert all(line.cure and line.health is Health.WARN for line in lines)
    assert can_evaluate(lines)


def test_rungs_are_those_of_a_real_jailed_process() -> None:
    (first, *_) = evaluating.sandbox()
    assert "limits" in first.detail
    assert first.health in (Health.OK, Health.WARN)
