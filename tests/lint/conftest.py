from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ksearch.tasks import init_task

Edit = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task folder as `ksearch init` writes it, with smaller workloads: it is linted very often here."""
    made = init_task(tmp_path / "example").folder
    text = (made / "task.toml").read_text()
    for old, new in (
        ("rows = 256, cols = 4096", "rows = 30, cols = 601"),
        ("rows = 99, cols = 1021", "rows = 9, cols = 99"),
    ):
        text = text.replace(old, new)
    (made / "task.toml").write_text(text)
    return made


@pytest.fixture
def edit(folder: Path) -> Edit:
    """Replace text in a file of the folder: it has to be there exactly once."""

    def change(old: str, new: str, file: str = "task.toml") -> Path:
        path = folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))
        return folder

    return change
