from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ksearch.store import Store, open_store
from ksearch.store.sqlite import sound_module


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ksearch.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as store:
        yield store


@pytest.fixture
def change(path: Path) -> Callable[..., None]:
    """Return a function that changes one row of the file at `path`, past the store."""

    def run(statement: str, *values: Any) -> None:
        with closing(sound_module()[0].connect(str(path))) as conn, conn:
            assert conn.execute(statement, values).rowcount == 1

    return run
