"""One HTTP exchange as it really was: what was sent (without the key), and what came back, byte for byte.

Hooks on the HTTP client, beneath the provider's SDK: they see what no abstraction above can hide, hold the key to its
host, and bound how much is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2

MAX_RESPONSE_BYTES = 24_000_000
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
# Content of the request, and what says nothing about how the model was asked.
_NO_PARAMETERS = frozenset(
    "messages input instructions system contents systemInstruction system_instruction prompt stream tools store".split()  # noqa: SIM905
)


class TooLarge(Exception):
    """More bytes than are read of one response."""


class WrongHost(Exception):
    """A request was about to go to another host than the key's."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self.inner = inner
        self.exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self.inner:
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                self.exchange.too_large = True
                raise TooLarge
            yield chunk

    async def aclose(self) -> None:
        await self.inner.aclose()


class Exchange:
    """Collects one request and its response."""

    def __init__(self, base_url: str, custom: bool, api_key: str) -> None:
        self.origin = _origin(base_url)
        self.custom = custom
        self.api_key = api_key
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.sent: dict[str, object] = {}
        self.wrong_host = ""  # the SDKs wrap what a hook raises, so it is also kept here
        self.too_large = False

    def client(self, timeout_s: float) -> httpx2.AsyncClient:
        """A client for one exchange. Redirects are not followed: they would carry the key to another host."""
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout_s, connect=min(15.0, timeout_s)),
            follow_redirects=False,
            verify=self.origin.startswith("https:"),  # without TLS there is nothing to verify, only 30 ms to lose
            event_hooks={"request": [self._on_request], "response": [self._on_response]},
        )

    async def _on_request(self, request: httpx2.Request) -> None:
        if _origin(str(request.url)) != self.origin:
            self.wrong_host = _origin(str(request.url))
            raise WrongHost(self.wrong_host)
        if self.custom:
            # The SDK adds these from the environment; they name an account at the vendor.
            for header in ("OpenAI-Organization", "OpenAI-Project"):
                request.headers.pop(header, None)
            if not self.api_key:
                request.headers.pop("Authorization", None)
        secrets = _foreign_secrets(self.api_key)
        for header, value in list(request.headers.items()):
            if value.split(" ")[-1] in secrets:
                del request.headers[header]
        try:
            body = json.loads(request.content)
        except ValueError:
            return
        if isinstance(body, dict):
            self.sent = {key: _brief(value) for key, value in body.items() if key not in _NO_PARAMETERS}

    async def _on_response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = dict(response.headers)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, self)
        self.body = await response.aread()


def _brief(value: object) -> object:
    """A parameter short enough to show: the body of a schema, or of anything long, is left out, its keys stay."""
    if isinstance(value, dict):
        return {key: "…" if key.lower().endswith("schema") else _brief(inner) for key, inner in value.items()}
    text = json.dumps(value)
    return value if len(text) <= 200 else text[:200] + "…"


def _foreign_secrets(own: str) -> frozenset[str]:
    """Values of environment variables that look like keys, but are not this model's."""
    named = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    return frozenset(value.strip() for value in named if len(value.strip()) >= 8) - {own}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def read_body(body: bytes) -> dict[str, Any] | None:
    """A response body as a JSON object, where it is one. Bytes that are no UTF-8 become lone surrogates."""
    try:
        data = json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
