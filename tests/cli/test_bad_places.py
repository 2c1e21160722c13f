"""Stores that cannot be used, in real processes: one message with the cure, an exit code, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ksearch.run import Run
from ksearch.store import export_run, open_store
from ksearch.store.sqlite import sound_module
from tests.cli.shell import Shell

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fake_run(shell: Shell, name: str, evaluations: int = 4) -> None:
    shell("run", "--name", name, "--evaluations", str(evaluations), "--quiet", KSEARCH_MODEL="fake")


def change(path: Path, statement: str) -> None:
    with closing(sound_module()[0].connect(str(path))) as conn, conn:
        assert conn.execute(statement).rowcount >= 1


def test_corrupt_truncated_newer_and_foreign_stores_are_named_with_the_cure(shell: Shell, process: Shell) -> None:
    fake_run(shell, "a")
    good = shell.folder / "runs.db"
    whole = good.read_bytes()
    assert len(whole) > 20_000
    spoilt = {
        "cut.db": whole[: len(whole) // 2],
        "header.db": b"x" * 4096 + whole[4096:],
        "text.db": b"this is no database\n" * 100,
    }
    for name, data in spoilt.items():
        (shell.folder / name).write_bytes(data)
        message = process.fails("show", "a", "--store", name, code=3)
        assert name in message
        assert "backup" in message
        assert (shell.folder / name).read_bytes() == data
    shutil.copy(good, shell.folder / "newer.db")
    change(shell.folder / "newer.db", "UPDATE ksearch_schema SET version = 99")
    assert "Upgrade" in process.fails("resume", "a", "--store", "newer.db", code=3).replace("upgrade", "Upgrade")
    shutil.copy(good, shell.folder / "changed.db")
    change(shell.folder / "changed.db", "UPDATE ksearch_events SET body = replace(body, 'passed', 'failed')")
    assert "does not belong" in process.fails("show", "a", "--store", "changed.db", code=3).replace(
        "do not", "does not"
    )
    assert shell.json("show", "a")["evaluations"] == 4  # the good one is as it was


def test_exported_run_is_shown_without_a_store_and_a_cut_one_refused(shell: Shell, process: Shell) -> None:
    fake_run(shell, "a")
    file = shell.folder / "run.jsonl"
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        export_run(store, "a", file)
    (shell.folder / "runs.db").unlink()
    assert process.json("show", "run.jsonl")["evaluations"] == 4
    assert "idea 0" in shell("show", "run.jsonl", "n1")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-3]))
    assert "was cut short" in process.fails("show", "run.jsonl", code=3)
    assert "no such file" in shell.fails("show", "absent.jsonl", code=2)


def test_home_that_cannot_be_written_leads_to_the_store_option(process: Shell) -> None:
    message = process.fails("new", code=3, HOME="/proc/nowhere", KSEARCH_STORE="")
    assert "/proc/nowhere/.local/share/ksearch" in message
    assert "--store PATH" in message
    assert "There is no store at" in process.fails("runs", code=3)
    assert "holds no run yet" in process.fails("ask", code=3)
    assert "holds no run 'nope'" in process.fails("resume", "nope", code=3)


@as_root
def test_full_disk_stops_a_search_with_all_that_was_stored(shell: Shell, process: Shell, small_disk: Path) -> None:
    place = str(small_disk / "runs.db")
    begin = ("run", "--name", "a", "--evaluations", "400", "--quiet", "--store", place)
    message = process.fails(*begin, code=3, KSEARCH_MODEL="fake")
    assert "is full" in message
    assert "resume the run" in message
    roomy = shell.folder / "roomy.db"
    shutil.copy(place, roomy)
    for end in ("-wal", "-shm"):
        if Path(place + end).exists():
            shutil.copy(place + end, str(roomy) + end)
    before = shell.json("show", "a", "--store", str(roomy))["evaluations"]
    assert before > 0
    shell("command", "a", "budget", "--evaluations", str(before + 3), "--store", str(roomy))
    shell("resume", "a", "--quiet", "--store", str(roomy))
    assert shell.json("show", "a", "--store", str(roomy))["evaluations"] == before + 3


@as_root
def test_read_only_disk_can_be_looked_at_but_not_added_to(shell: Shell, process: Shell, small_disk: Path) -> None:
    place = str(small_disk / "runs.db")
    shell("run", "--name", "a", "--evaluations", "2", "--quiet", "--store", place, KSEARCH_MODEL="fake")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert process.json("show", "a", "--store", place)["evaluations"] == 2
    assert "read-only" in process.fails("command", "a", "note", "x", "--store", place, code=3).lower()


def test_two_drivers_share_a_run_and_its_accounting(shell: Shell) -> None:
    fake_run(shell, "alone", 12)
    slow = {"KSEARCH_MODEL": "fake", "KSEARCH_FAKE_MS": "20", "KSEARCH_FAKE_CALLS": str(shell.folder / "calls")}
    shell("new", "--name", "both", "--evaluations", "12", KSEARCH_MODEL="fake")
    drivers = [shell.start("resume", "both", "--quiet", **slow) for _ in range(2)]
    for driver in drivers:
        out, err = driver.communicate(timeout=60)
        assert driver.returncode == 0, err
        assert "12 evaluations" in out
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        both, alone = (Run(store, name).state for name in ("both", "alone"))
    assert (both.evaluated, both.attempts, both.spent) == (alone.evaluated, alone.attempts, alone.spent)
    assert both.tree == alone.tree
    calls = (shell.folder / "calls").read_text().splitlines()
    assert len(calls) == len(set(calls))


def test_reader_of_a_pipe_that_leaves_is_no_error(shell: Shell) -> None:
    fake_run(shell, "a")
    reader = shell.start("show", "a", "--events")
    assert reader.stdout
    reader.stdout.close()
    assert reader.wait(timeout=60) == 141
    assert reader.stderr
    assert reader.stderr.read() == ""
