"""Starting the server: over stdio for one agent, or over HTTP on loopback, with a token, for several."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ksearch.errors import BadInput
from ksearch.mcp.house import House
from ksearch.mcp.identity import Identities
from ksearch.mcp.server import make_server

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_CONNECTIONS = 128
_LOCKED = "This server needs its token, as Authorization: Bearer TOKEN; `ksearch mcp --http` printed it.\n"


@dataclass(frozen=True)
class Place:
    """Where to listen. `called`: further names by which it may be called, such as that of a proxy."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: a free one
    called: tuple[str, ...] = ()


class Locked:
    """An application behind a token. Nothing is read of a request that does not bring it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._opens(Headers(scope=scope).get("authorization", "")):
            refusal = PlainTextResponse(_LOCKED, 401, {"www-authenticate": "Bearer"})
            await refusal(scope, receive, send)
        elif scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)

    def _opens(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token)


def application(house: House, token: str, names: Iterable[str], port: int) -> ASGIApp:
    """The ASGI application. Requests must be addressed to one of `names` (a page elsewhere may point a name of its own
    here), and come from no web page but one of ours."""
    hosts = [form for name in names for form in (name, f"{name}:{port}")]
    security = TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    )
    server = make_server(house, Identities(shared=True))
    return Locked(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), token)


def serve_http(house: House, place: Place, token: str | None, started: Callable[[str, str], None]) -> None:
    """Serve until interrupted. `started` is called with address and token once requests are taken.

    Raises:
        BadInput: the address cannot be had.
    """
    token = token or secrets.token_urlsafe(32)
    bare = place.host.strip("[]")
    with _listen(bare, place.port) as sock:
        port = sock.getsockname()[1]
        name = f"[{bare}]" if ":" in bare else bare
        app = application(house, token, dict.fromkeys((*LOOPBACK, name, *place.called)), port)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, limit_concurrency=MAX_CONNECTIONS, ws="none", lifespan="on",
            timeout_graceful_shutdown=2, server_header=False,
        )  # fmt: skip
        reach = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)  # all: reached by loopback too
        started(f"http://{reach}:{port}{PATH}", token)
        uvicorn.Server(config).run(sockets=[sock])


def _listen(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(100)
    except (OSError, OverflowError) as error:
        sock.close()
        raise BadInput(f"cannot listen on {host}:{port}: {error}. Name another --host or --port") from error
    return sock


def serve_stdio(house: House) -> None:
    """Serve the process at the other end of stdin and stdout until it closes them."""
    asyncio.run(make_server(house, Identities(shared=False)).run_stdio_async())
