"""The store: append-only events and content-addressed blobs in SQL, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, StaticPool

from ksearch.errors import Conflict, Corrupt, StoreError, UnknownBlob
from ksearch.store import rows, schema
from ksearch.store.faults import translated
from ksearch.store.postgres import lock_schema
from ksearch.store.records import (
    Link,
    RunInfo,
    StoredEvent,
    blob_name,
    canonical,
    check_run_id,
    damaged,
    mentioned_blobs,
    open_event,
)
from ksearch.store.sqlite import WRITE


class Store:
    """Runs, their events and their blobs. Safe to share between threads; after a fork each side reconnects.

    Every method raises `StoreError` with the cure when the database fails. Make one with `open_store`.
    `notes` says in words what was decided about the place (for example why WAL is not used).
    """

    def __init__(self, engine: Engine, name: str, *, readonly: bool = False, notes: Sequence[str] = ()) -> None:
        self.name = name
        self.readonly = readonly
        self.notes = tuple(notes)
        self._engine = engine
        self._writer = engine.execution_options(**{WRITE: True})  # the same connections
        self._pid = os.getpid()
        # A database in memory has one connection for all threads.
        shared = isinstance(engine.pool, StaticPool)
        self._turn: AbstractContextManager[Any] = threading.RLock() if shared else nullcontext()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A database in memory is gone."""
        self._engine.dispose()

    def prepare(self) -> None:
        """Make the tables or bring them up to date; for a viewer, check that they are there."""
        if self.readonly:
            with self._reading() as conn:
                found = schema.found_version(conn, self.name)
            if found != len(schema.MIGRATIONS):
                raise StoreError(f"{self.name} holds no store that can be viewed. Open it once for writing.")
            return
        with self._writing() as conn:
            if conn.dialect.name == "postgresql":
                lock_schema(conn)
            schema.bring_up(conn, self.name)

    def create_run(self, run_id: str, meta: Mapping[str, Any]) -> None:
        """Begin a run. `meta` is a JSON object that never changes: the hash chain begins with it.

        Raises:
            StoreError: the name cannot be used or is taken, or `meta` is not JSON.
        """
        now = time.time()
        with self._writing() as conn:
            rows.insert_run(conn, self.name, RunInfo(check_run_id(run_id), now, dict(meta), 0, now))

    def runs(self) -> list[RunInfo]:
        """Return all runs, the oldest first."""
        with self._reading() as conn:
            return rows.all_runs(conn, self.name)

    def run(self, run_id: str) -> RunInfo:
        """Return one run.

        Raises:
            UnknownRun: there is none of that name.
        """
        with self._reading() as conn:
            return rows.head(conn, self.name, run_id)[0]

    def append(
        self, run_id: str, expected_seq: int, events: Sequence[Mapping[str, Any]], blobs: Iterable[bytes] = ()
    ) -> int:
        """Add events after `expected_seq`, and `blobs`, all or none; return the new last seq.

        They are on the disk when this returns. If it fails with the connection, whether they were stored
        is not known: read the log again.

        Raises:
            Conflict: somebody else came first; `actual_seq` is the run's last event now.
            UnknownRun: there is no such run.
        """
        texts = [canonical(body) for body in events]
        with self._writing() as conn:
            info, link = rows.head(conn, self.name, run_id, lock=True)
            if info.seq != expected_seq:
                raise Conflict(
                    f"Run {run_id} is at event {info.seq}, not {expected_seq}: somebody else appended. "
                    "Read the new events and decide again.",
                    info.seq,
                )
            rows.insert_blobs(conn, blobs)
            return rows.insert_events(conn, run_id, link, texts, [time.time()] * len(texts)).seq

    def read(self, run_id: str, after: int = 0) -> Iterator[StoredEvent]:
        """Yield the events after seq `after` that were there when this began, checking the hash chain.

        Raises:
            UnknownRun: there is no such run.
            Corrupt: an event is missing or was changed; the events before it were yielded.
        """
        where = f"{self.name}, run {run_id}"
        with self._reading() as conn:
            end, link = rows.head(conn, self.name, run_id)
            if after and after == end.seq:
                return  # the usual answer to "is there anything new?"; what was there was checked when it was read
            if after > end.seq:
                raise Corrupt(damaged(where, end.seq + 1, f"events up to {after} were read before, now they are gone"))
            last = link
            link = rows.link_at(conn, run_id, after, where)
        while link.seq < end.seq:
            with self._reading() as conn:
                page = rows.page(conn, run_id, link.seq, end.seq)
            if not page:
                raise Corrupt(damaged(where, link.seq + 1, "it is missing"))
            for row in page:
                event = open_event(where, link, row)
                link = Link(event.seq, event.hash)
                yield event
        if link != last:
            raise Corrupt(damaged(where, link.seq, "the end of the log is not what the run's record says"))

    def put_blob(self, data: bytes) -> str:
        """Keep `data`, on the disk when this returns; return its SHA-256 in hex. Again is harmless."""
        with self._writing() as conn:
            return rows.insert_blobs(conn, [data])[0]

    def has_blob(self, sha: str) -> bool:
        """Tell whether the blob is there, without reading it."""
        with self._reading() as conn:
            return rows.has_blob(conn, sha)

    def get_blob(self, sha: str) -> bytes:
        """Return a blob by its SHA-256.

        Raises:
            UnknownBlob: there is none.
            Corrupt: its bytes are no longer those that were stored.
        """
        with self._reading() as conn:
            data = rows.find_blob(conn, sha)
        if data is None:
            raise UnknownBlob(f"{self.name} holds no blob {sha}. If the run came from a file, import it again.")
        if blob_name(data) != sha:
            raise Corrupt(
                f"{self.name}: blob {sha} is damaged: its bytes do not match its name. "
                "Storing the same bytes again repairs it; else bring the store back from a backup."
            )
        return data

    def records(self, run_id: str) -> Iterator[StoredEvent | bytes]:
        """Yield a run's events, each after the blobs that it is the first to mention (by SHA-256).

        A mention of something that is not in the store, such as a program's hash, is passed over.
        """
        seen: set[str] = set()
        for sha in mentioned_blobs([canonical(self.run(run_id).meta)]):
            yield from self._new_blob(sha, seen)
        for event in self.read(run_id):
            for sha in mentioned_blobs([canonical(event.body)]):
                yield from self._new_blob(sha, seen)
            yield event

    def restore(self, run: RunInfo, records: Iterable[StoredEvent | bytes]) -> None:
        """Take over a whole run from elsewhere, hashes and times as they were: all of it or nothing.

        Raises:
            StoreError: a run of that name is here already.
            Corrupt: the events do not make the chain that `run` and their hashes claim.
        """
        where = f"Run {run.id} being brought in"
        with self._writing() as conn:
            stored = link = rows.insert_run(conn, self.name, run)
            texts: list[str] = []
            times: list[float] = []
            for record in records:
                if isinstance(record, bytes):
                    rows.insert_blobs(conn, [record])
                    continue
                texts.append(canonical(record.body))
                times.append(record.at)
                open_event(where, link, (record.seq, texts[-1], record.hash, record.at))
                link = Link(record.seq, record.hash)
                if len(texts) == rows.PAGE:
                    stored = rows.insert_events(conn, run.id, stored, texts, times)
                    texts, times = [], []
            rows.insert_events(conn, run.id, stored, texts, times)
            if link.seq != run.seq:
                raise Corrupt(damaged(where, link.seq + 1, f"it is missing: the run has {run.seq} events"))

    def _new_blob(self, sha: str, seen: set[str]) -> Iterator[bytes]:
        if sha not in seen and self.has_blob(sha):
            yield self.get_blob(sha)
        seen.add(sha)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._after_fork()
        with self._turn, translated(self.name), self._engine.begin() as conn:
            yield conn

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self.readonly:
            raise StoreError(f"{self.name} was opened for viewing only: nothing can be added to it.")
        self._after_fork()
        with self._turn, translated(self.name), self._writer.begin() as conn:
            yield conn

    def _after_fork(self) -> None:
        """In a forked child: leave the parent's connections alone, which are not its own."""
        if self._pid != os.getpid():
            self._engine.dispose(close=False)
            self._pid = os.getpid()
