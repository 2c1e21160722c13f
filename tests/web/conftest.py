from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `ui` is not installed")

from starlette.testclient import TestClient

from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.web.app import make_app
from ksearch.web.desk import Desk
from ksearch.web.security import Rules
from tests.web import sample

TOKEN = "a-token-of-a-test"
HERE = "http://127.0.0.1:8321"


def client_of(desk: Desk, token: str | None = TOKEN, signed_in: bool = True) -> TestClient:
    headers = {"authorization": f"Bearer {TOKEN}"} if signed_in else {}
    app = make_app(desk, Rules.of(token, ["127.0.0.1", "localhost", "::1"], 8321))
    return TestClient(app, base_url=HERE, headers=headers, follow_redirects=False)


@pytest.fixture(scope="session")
def finished_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished search; tests that write make their own."""
    place = tmp_path_factory.mktemp("web") / "runs.db"
    with open_store(place) as store:
        sample.finished(store, "softmax-1", 24)
    return place


@pytest.fixture
def viewed(finished_store: Path) -> Iterator[Store]:
    with open_store(finished_store, readonly=True) as store:
        yield store


@pytest.fixture
def client(viewed: Store) -> TestClient:
    return client_of(Desk(viewed, "softmax-1"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "own.db"


@pytest.fixture
def live(place: Path) -> Iterator[tuple[Run, TestClient]]:
    """A run just begun, and a server that may speak to it."""
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 30)
        desk = Desk(viewed, "live-1", lambda: open_store(place), "alice")
        yield run, client_of(desk)
        desk.close()
