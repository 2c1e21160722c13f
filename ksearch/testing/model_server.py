"""A small server that speaks the OpenAI protocols on 127.0.0.1, with answers told to it beforehand.

It misbehaves on demand in the ways that providers do, so that clients are tested over a real connection:

```python
with ModelServer([status(429, headers={"Retry-After": "1"}), chat("hello")]) as server:
    model = open_model("openai:any", base_url=server.url)
```

The last answer is repeated. `server.requests` holds what was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scripted:
    """One answer. `drip_s` sends the body byte by byte; `hang` sends nothing until the server closes."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    drip_s: float = 0.0
    cut_at: int | None = None  # bytes of the body after which the connection is closed
    wire: bytes | None = None  # sent instead of an HTTP response, byte for byte; then the connection is closed


def chat(
    content: object = "ok",
    *,
    finish: str = "stop",
    usage: Mapping[str, Any] | None = None,
    model: str = "fake-1",
    **message: object,
) -> Scripted:
    """A chat completion. `usage={}` leaves the usage out; further keywords go into the message."""
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120} if usage is None else usage
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }
    if counts:
        body["usage"] = dict(counts)
    return Scripted(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def responses(text: str, *, model: str = "fake-1", usage: Mapping[str, Any] | None = None) -> Scripted:
    """An answer of OpenAI's Responses API."""
    part = {"type": "output_text", "text": text, "annotations": []}
    body: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": model,
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}],
        "usage": usage
        or {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 600},
            "output_tokens": 200,
            "output_tokens_details": {"reasoning_tokens": 50},
            "total_tokens": 1200,
        },
    }
    return Scripted(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def status(number: int, message: str = "", *, headers: Mapping[str, str] | None = None, **error: object) -> Scripted:
    """An error in OpenAI's form; further keywords go beside the message ("type", "code")."""
    body = json.dumps({"error": {"message": message or f"status {number}", **error}}).encode()
    return Scripted(number, body, {"Content-Type": "application/json", **(headers or {})})


def raw(body: bytes, code: int = 200, content_type: str = "application/json") -> Scripted:
    """Any bytes at all."""
    return Scripted(code, body, {"Content-Type": content_type})


def hang() -> Scripted:
    """Accept the request and say nothing."""
    return Scripted(hang=True)


def drip(answer: Scripted, seconds_per_byte: float) -> Scripted:
    """The answer so slowly that each read succeeds and the whole never comes."""
    return Scripted(answer.status, answer.body, answer.headers, drip_s=seconds_per_byte)


def cut(answer: Scripted, at: int) -> Scripted:
    """The answer broken off after `at` bytes of its body."""
    return Scripted(answer.status, answer.body, answer.headers, cut_at=at)


def wire(data: bytes) -> Scripted:
    """Bytes instead of a response: no HTTP, half of one, chunks without an end."""
    return Scripted(wire=data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what the tests are about: nothing to print."""


class ModelServer:
    """The server, as a context manager. Answers are taken in order; a callable gets the request and makes one."""

    def __init__(self, answers: Sequence[Scripted | Callable[[Asked], Scripted]], port: int = 0) -> None:
        self.requests: list[Asked] = []
        self._answers = list(answers)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL for OpenAI-compatible clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def close(self) -> None:
        """Give the port back without ever having served on it."""
        self._server.server_close()

    def _take(self, asked: Asked) -> Scripted:
        with self._lock:
            self.requests.append(asked)
            answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        return answer if isinstance(answer, Scripted) else answer(asked)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take, closing = self._take, self._closing

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {key.lower(): value for key, value in self.headers.items()}
                _send(self, take(Asked(self.path, headers, json.loads(data or b"{}"))), closing)

        return Handler


def _send(to: BaseHTTPRequestHandler, answer: Scripted, closing: threading.Event) -> None:
    whole = not (answer.hang or answer.wire is not None or answer.cut_at is not None or answer.drip_s)
    to.close_connection = not whole or to.close_connection
    if answer.hang:
        closing.wait()
    elif answer.wire is not None:
        to.wfile.write(answer.wire)
    else:
        to.send_response(answer.status)
        for key, value in answer.headers.items():
            to.send_header(key, value)
        to.send_header("Content-Length", str(len(answer.body)))
        to.end_headers()
        _send_body(to, answer, closing)


def _send_body(to: BaseHTTPRequestHandler, answer: Scripted, closing: threading.Event) -> None:
    if answer.cut_at is not None:
        to.wfile.write(answer.body[: answer.cut_at])
    elif answer.drip_s:
        for byte in answer.body:
            if closing.wait(answer.drip_s):
                break
            to.wfile.write(bytes([byte]))
    else:
        to.wfile.write(answer.body)
