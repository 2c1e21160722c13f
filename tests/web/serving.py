"""A real server on a real socket, for as long as a test needs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ksearch.web.app import make_app
from ksearch.web.desk import Desk
from ksearch.web.security import Rules
from ksearch.web.serve import Place, listen, server_of

TOKEN = "a-token-of-a-test"


@contextmanager
def serving(desk: Desk, port: int = 0) -> Iterator[str]:
    """The address, token included."""
    with listen(Place(port=port)) as sock:
        port = sock.getsockname()[1]
        server: uvicorn.Server = server_of(make_app(desk, Rules.of(TOKEN, ["127.0.0.1"], port)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{port}/?token={TOKEN}"
        finally:
            server.should_exit = True
            thread.join(10)
