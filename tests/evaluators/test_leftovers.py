"""Folders of coordinators that were killed hard are removed when the next one starts; those of living ones stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ksearch.evaluators.leftovers import prefix, sweep

MAKE = "import sys, tempfile; from ksearch.evaluators.leftovers import prefix;"
MAKE += "print(tempfile.mkdtemp(prefix=prefix(sys.argv[2]), dir=sys.argv[1]), flush=True); sys.stdin.read()"


def owner(folder: Path, start: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(folder), start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folders_of_killed_processes_are_swept_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    dead, left = owner(tmp_path, "ksearch-")
    built, left_too = owner(tmp_path, "ksearch-build-")
    alive, kept = owner(tmp_path, "ksearch-")
    (left / "run-1").mkdir()
    (left / "run-1" / "file").write_text("x")
    for process in (dead, built):
        process.kill()
        process.communicate()
    try:
        assert set(sweep(tmp_path)) == {left, left_too}
        assert not left.exists()
        assert kept.exists()
    finally:
        alive.communicate("")


def test_what_only_looks_like_ours_is_left_alone(tmp_path: Path) -> None:
    for name in ("ksearch-timing.lock", "ksearch-abc", "ksearch-1-2-3-x", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / (prefix("ksearch-").replace("-", "_") + "x")).mkdir()
    assert sweep(tmp_path) == []


def test_a_name_that_was_given_to_another_process_since_does_not_protect(tmp_path: Path) -> None:
    mine = prefix("ksearch-")
    head, _, _ = mine.rstrip("-").rpartition("-")
    (tmp_path / f"{head}-1-abcd").mkdir()  # this pid, but of a process that started earlier
    (tmp_path / f"{mine}abcd").mkdir()
    assert [p.name for p in sweep(tmp_path)] == [f"{head}-1-abcd"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    head, _, _ = prefix("ksearch-").rstrip("-").rpartition("-")
    (tmp_path / f"{head}-1-abcd").symlink_to(target)
    assert sweep(tmp_path) == []
    assert target.exists()
