from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are made, and kernels that are built, are kept out of the user's folders."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def examples() -> Path:
    return Path(__file__).parents[2] / "examples" / "formats"
