"""The store's contract, on each engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksearch.store import Store, open_store
from ksearch.testing.store_contract import StoreContract

POSTGRES_URL = os.environ.get("KSEARCH_TEST_POSTGRES_URL", "")


class TestSqlite(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with open_store(tmp_path / "ksearch.db") as store:
            yield store


class TestSqliteRollbackJournal(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
        monkeypatch.setattr("ksearch.store.sqlite.is_network", lambda kind: True)
        with open_store(tmp_path / "ksearch.db") as store:
            yield store


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with open_store(":memory:") as store:
            yield store


if POSTGRES_URL:

    class TestPostgres(StoreContract):
        @pytest.fixture
        def store(self) -> Iterator[Store]:
            with open_store(POSTGRES_URL) as store:
                yield store

else:

    def test_postgres() -> None:
        pytest.skip("no PostgreSQL: set KSEARCH_TEST_POSTGRES_URL (.ci/run starts a server and does)")
