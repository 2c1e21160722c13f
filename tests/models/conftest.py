from __future__ import annotations

import os

import pytest

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between us and our own server, and no real key is ever read."""
    for name in [*PROXIES, *(name for name in os.environ if name.endswith("_API_KEY"))]:
        monkeypatch.delenv(name, raising=False)
