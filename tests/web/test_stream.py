"""The stream: each event once and in order, from where one left off; a beat when nothing happens; nothing piles up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ksearch.drivers import drive
from ksearch.store import Store, open_store
from ksearch.web import stream
from ksearch.web.desk import Desk
from ksearch.web.reader import RunReader
from ksearch.web.stream import Streams, follow
from tests.web import sample


async def take(source: AsyncIterator[bytes], count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(10):
        async for message in source:
            found.append(message)
            if len(found) == count:
                break
    return found


def opened(message: bytes) -> tuple[int, dict[str, Any]]:
    first, second = message.decode().strip().split("\n")
    return int(first.removeprefix("id: ")), json.loads(second.removeprefix("data: "))


def test_events_come_once_in_order_with_their_number_as_id(viewed: Store) -> None:
    reader = RunReader(viewed, "softmax-1")
    log = list(viewed.read("softmax-1"))
    found = [opened(m) for m in asyncio.run(take(follow(reader, 0), len(log)))]
    assert [id for id, _ in found] == list(range(1, len(log) + 1))
    assert [body["event"] for _, body in found] == [e.body for e in log]


def test_line_that_was_lost_is_taken_up_after_the_last_event_seen(viewed: Store) -> None:
    reader = RunReader(viewed, "softmax-1")
    found = asyncio.run(take(follow(reader, 100), 3))
    assert [opened(m)[0] for m in found] == [101, 102, 103]


def test_last_event_id_counts_more_than_the_address(viewed: Store) -> None:
    async def first(last: int) -> bytes:
        reply = await Streams(Desk(viewed, "softmax-1")).open(None, last)
        body = reply.body_iterator  # type: ignore[attr-defined]
        messages = await take(body, 2)
        await body.aclose()
        return messages[1]

    assert opened(asyncio.run(first(41)))[0] == 42


def test_what_another_process_appends_arrives(place: Path) -> None:
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 4)

        async def both() -> list[bytes]:
            source = follow(RunReader(viewed, "live-1"), run.seq)
            waiting = asyncio.create_task(take(source, 10))
            await asyncio.to_thread(drive, run, sample.desk(), lambda _: None)
            return await waiting

        assert [opened(m)[0] for m in asyncio.run(both())] == list(range(2, 12))


def test_silence_is_filled_with_beats(viewed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LOOK_S", 0.01)
    reader = RunReader(viewed, "softmax-1")
    end = reader.refresh()
    assert asyncio.run(take(follow(reader, end, beat_s=0.02), 2)) == [b": still here\n\n"] * 2
    assert stream.BEAT_S == 15


def test_slow_reader_is_served_page_by_page_and_nothing_is_kept_for_it(
    viewed: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RunReader(viewed, "softmax-1")
    asked: list[int] = []
    real = reader.events

    def counting(after: int, limit: int) -> Any:
        asked.append(limit)
        return real(after, limit)

    monkeypatch.setattr(reader, "events", counting)
    monkeypatch.setattr(stream, "PAGE", 5)
    asyncio.run(take(follow(reader, 0), 7))
    assert asked == [5, 5]


def test_streams_are_limited_and_a_closed_one_makes_room(viewed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_STREAMS", 2)

    async def crowd() -> list[int]:
        streams = Streams(Desk(viewed, "softmax-1"))
        bodies = []
        for _ in range(2):
            reply = await streams.open(None, 0)
            await take(reply.body_iterator, 1)  # type: ignore[attr-defined]
            bodies.append(reply.body_iterator)  # type: ignore[attr-defined]
        refused = (await streams.open(None, 0)).status_code
        await bodies[0].aclose()
        return [refused, (await streams.open(None, 0)).status_code]

    assert asyncio.run(crowd()) == [503, 200]


def test_trouble_with_the_store_is_told_in_the_stream(viewed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = RunReader(viewed, "softmax-1")

    def broken(after: int, limit: int) -> Any:
        raise stream.KSearchError("the disk is gone")

    monkeypatch.setattr(reader, "events", broken)
    message = asyncio.run(take(follow(reader, 0, beat_s=0.01), 1))[0]
    assert message.startswith(b"event: trouble")
    assert b"the disk is gone" in message
