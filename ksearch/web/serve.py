"""Starting the server: a port, a token, the address to open."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from ksearch.errors import BadInput
from ksearch.web.app import make_app
from ksearch.web.desk import Desk
from ksearch.web.security import Guard, Rules

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_CONNECTIONS = 128
MAX_HEADERS = 32 * 1024  # bytes


@dataclass(frozen=True)
class Place:
    """Where to listen. `hosts`: further names by which it may be called, such as that of a proxy."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: a free one
    hosts: tuple[str, ...] = ()


def listen(place: Place) -> socket.socket:
    """Raises:
    BadInput: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((place.host, place.port))
        sock.listen(100)  # a browser that is quick waits, and is not refused
    except (OSError, OverflowError) as error:
        sock.close()
        raise BadInput(f"cannot listen on {place.host}:{place.port}: {error}. Name another --host or --port") from error
    return sock


class Server(uvicorn.Server):
    """Ends the open streams when it is asked to stop: they would go on for ever."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        guard = self.config.app
        if isinstance(guard, Guard):
            guard.closing.set()
        await super().shutdown(sockets)


def server_of(app: Guard) -> uvicorn.Server:
    """A server with our limits, not yet running."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, limit_concurrency=MAX_CONNECTIONS, lifespan="off", ws="none",
        h11_max_incomplete_event_size=MAX_HEADERS, timeout_keep_alive=10, timeout_graceful_shutdown=2,
        server_header=False, date_header=False,
    )  # fmt: skip
    return Server(config)


def serve(desk: Desk, place: Place, started: Callable[[str], None], token: str | None = None) -> None:
    """Serve until interrupted. `started` is called with the address, token included, once it can be opened."""
    with listen(place) as sock:
        port = sock.getsockname()[1]
        token = token or secrets.token_urlsafe(32)
        rules = Rules.of(token, {*LOOPBACK, place.host, *place.hosts}, port)
        server = server_of(make_app(desk, rules))
        name = f"[{place.host}]" if ":" in place.host else place.host
        started(f"http://{'127.0.0.1' if place.host == '0.0.0.0' else name}:{port}/?token={token}")
        server.run(sockets=[sock])
