"""Server-sent events: the log as it grows. A stream holds nothing but the number of the last event it sent.

A slow page is served what it can take: the next page of events is read only when the last one has gone out.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from ksearch.errors import KSearchError
from ksearch.store import StoredEvent
from ksearch.web.desk import Desk
from ksearch.web.reader import RunReader
from ksearch.web.strict import StrictJSON, dumps

MAX_STREAMS = 24  # open at once
PAGE = 200  # events read at a time
BEAT_S = 15.0
LOOK_S = 0.3  # between two looks at the store
RETRY_MS = 1000  # a browser that lost the line tries again after this


def event_json(stored: StoredEvent) -> dict[str, Any]:
    return {"seq": stored.seq, "stored_at": stored.at, "event": stored.body}


class Streams:
    def __init__(self, desk: Desk, closing: threading.Event | None = None) -> None:
        self._desk = desk
        self._closing = closing or threading.Event()
        self.open_now = 0

    async def open(self, run: str | None, after: int) -> Response:
        if self.open_now >= MAX_STREAMS:
            return StrictJSON({"error": f"{MAX_STREAMS} pages are following already: close some"}, 503)
        reader = await run_in_threadpool(self._desk.reader, run)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._follow(reader, after), media_type="text/event-stream", headers=headers)

    async def _follow(self, reader: RunReader, after: int) -> AsyncIterator[bytes]:
        self.open_now += 1
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            async for message in follow(reader, after, closing=self._closing):
                yield message
        finally:
            self.open_now -= 1


async def follow(
    reader: RunReader, after: int, beat_s: float = BEAT_S, closing: threading.Event | None = None
) -> AsyncIterator[bytes]:
    """Events after `after`, until `closing`; a comment when nothing was said for `beat_s` seconds."""
    spoken = time.monotonic()
    while closing is None or not closing.is_set():
        try:
            found = await run_in_threadpool(reader.events, after, PAGE)
        except KSearchError as error:
            yield b"event: trouble\ndata: " + dumps({"error": str(error)}) + b"\n\n"
            await asyncio.sleep(beat_s)
            continue
        for stored in found:
            yield f"id: {stored.seq}\ndata: ".encode() + dumps(event_json(stored)) + b"\n\n"
            after, spoken = stored.seq, time.monotonic()
        if time.monotonic() - spoken >= beat_s:
            yield b": still here\n\n"
            spoken = time.monotonic()
        if not found:
            await asyncio.sleep(LOOK_S)
