"""Temporary folders of coordinators that were killed: named after their process, removed by the next one to start."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"ksearch-(?:build-)?(\d+)-(\d+)-(\d+)-\w+")


def prefix(start: str) -> str:
    """`start` with this process in it: its pid name space, pid and start time, which together never come again."""
    return f"{start}{_space()}-{os.getpid()}-{_started(os.getpid())}-"


def sweep(folder: Path | None = None) -> list[Path]:
    """Remove what dead processes of this pid name space and user have left behind; returns what was removed.

    Args:
        folder: where to look; None: the folder for temporary files.
    """
    removed = []
    for path in (folder or Path(tempfile.gettempdir())).glob("ksearch-*"):
        found = _NAME.fullmatch(path.name)
        if found is None or int(found[1]) != _space() or _started(int(found[2])) == int(found[3]):
            continue
        if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.geteuid():
            continue
        shutil.rmtree(path, ignore_errors=True)
        removed.append(path)
    return removed


def _space() -> int:
    return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116  # the link's target, not a file


def _started(pid: int) -> int:
    """In clock ticks after boot; -1: there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(text.rpartition(")")[2].split()[19])
