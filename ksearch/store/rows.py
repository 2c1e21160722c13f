"""Reading and writing single rows inside a transaction that the caller holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ksearch.errors import Corrupt, StoreError, UnknownRun
from ksearch.store.records import Link, RunInfo, blob_name, canonical, damaged, first_link, next_link
from ksearch.store.schema import blobs as blob_table
from ksearch.store.schema import events as event_table
from ksearch.store.schema import runs as run_table

PAGE = 1000  # events read in one short transaction, so that a slow reader never holds up a writer

# Asked for with every event: made once, so that SQLAlchemy need not find out again what they say.
_RUN = select(run_table).where(run_table.c.run_id == bindparam("id"))
_RUN_LOCKED = _RUN.with_for_update()
_ADVANCE = update(run_table).where(run_table.c.run_id == bindparam("id"))
_ADD_EVENT = event_table.insert()
_BLOB = select(blob_table.c.data).where(blob_table.c.sha == bindparam("sha"))


def all_runs(conn: Connection, store: str) -> list[RunInfo]:
    """Return all runs, the oldest first."""
    found = conn.execute(select(run_table).order_by(run_table.c.created_at, run_table.c.run_id))
    return [_run_and_end(store, row)[0] for row in found]


def head(conn: Connection, store: str, run_id: str, *, lock: bool = False) -> tuple[RunInfo, Link]:
    """Return a run and the end of its chain; with `lock`, nobody else appends until the transaction ends.

    Raises:
        UnknownRun: there is none of that name.
        Corrupt: its record was changed.
    """
    row = conn.execute(_RUN_LOCKED if lock else _RUN, {"id": run_id}).one_or_none()
    if row is None:
        raise UnknownRun(f"{store} holds no run {run_id!r}. List them: ksearch runs.")
    return _run_and_end(store, row)


def _run_and_end(store: str, row: Any) -> tuple[RunInfo, Link]:
    if first_link(row.run_id, row.meta).hash != row.genesis:
        raise Corrupt(
            f"{store}: the record of run {row.run_id} was changed after it was made. "
            "Nothing was changed now. Bring the store back from a backup, or the run from an exported file."
        )
    info = RunInfo(row.run_id, row.created_at, json.loads(row.meta), row.seq, row.updated_at)
    return info, Link(row.seq, row.hash)


def link_at(conn: Connection, run_id: str, seq: int, where: str) -> Link:
    """Return the link of event `seq` (0: the beginning) as it is stored.

    Raises:
        Corrupt: the event is missing.
    """
    runs, events = run_table.c, event_table.c
    query = select(events.hash).where(events.run_id == run_id, events.seq == seq)
    found = conn.execute(query if seq else select(runs.genesis).where(runs.run_id == run_id)).scalar()
    if found is None:
        raise Corrupt(damaged(where, seq, "it is missing"))
    return Link(seq, found)


def page(conn: Connection, run_id: str, after: int, end: int) -> list[tuple[int, str, str, float]]:
    """Return up to `PAGE` events (seq, body, hash, at) after seq `after` and up to `end`."""
    events = event_table.c
    query = (
        select(events.seq, events.body, events.hash, events.at)
        .where(events.run_id == run_id, events.seq > after, events.seq <= end)
        .order_by(events.seq)
        .limit(PAGE)
    )
    return [(row[0], row[1], row[2], row[3]) for row in conn.execute(query)]


def insert_run(conn: Connection, store: str, run: RunInfo) -> Link:
    """Add a run without events and return the beginning of its chain.

    Raises:
        StoreError: its name is taken.
    """
    meta = canonical(run.meta)
    link = first_link(run.id, meta)
    row = {"run_id": run.id, "created_at": run.created_at, "meta": meta, "genesis": link.hash}
    row |= {"seq": 0, "hash": link.hash, "updated_at": run.updated_at}
    query = _insert(conn.dialect.name, run_table).values(row).on_conflict_do_nothing().returning(run_table.c.run_id)
    if conn.execute(query).first() is None:
        raise StoreError(f"{store} already holds a run {run.id}. Choose another name, or resume that run.")
    return link


def insert_events(conn: Connection, run_id: str, link: Link, texts: Sequence[str], times: Sequence[float]) -> Link:
    """Add events (canonical texts, and when each was stored) after `link`; return the new end."""
    rows = []
    for text, at in zip(texts, times, strict=True):
        link = next_link(link, text)
        rows.append({"run_id": run_id, "seq": link.seq, "body": text, "hash": link.hash, "at": at})
    if rows:
        conn.execute(_ADD_EVENT, rows)
        conn.execute(_ADVANCE, {"id": run_id, "seq": link.seq, "hash": link.hash, "updated_at": times[-1]})
    return link


def has_blob(conn: Connection, sha: str) -> bool:
    """Tell whether the blob is there, without reading it."""
    return conn.execute(select(blob_table.c.sha).where(blob_table.c.sha == sha)).first() is not None


def find_blob(conn: Connection, sha: str) -> bytes | None:
    """Return the blob's bytes as they are stored, unchecked, or None."""
    data = conn.execute(_BLOB, {"sha": sha}).scalar_one_or_none()
    # Text here means that somebody wrote to the table by hand; the caller's hash check will say so.
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def insert_blobs(conn: Connection, blobs: Iterable[bytes]) -> list[str]:
    """Add blobs, or repair those whose stored bytes differ; return their names in the order given."""
    rows = [{"sha": blob_name(data), "data": data} for data in blobs]
    if rows:
        # In one order for all, so that two writers of the same blobs never wait for each other.
        conn.execute(_keep_blob(conn.dialect.name), sorted(rows, key=lambda row: str(row["sha"])))
    return [str(row["sha"]) for row in rows]


@cache
def _keep_blob(dialect: str) -> Any:
    """Add a blob, or repair the one that is there."""
    insert = _insert(dialect, blob_table)
    excluded = insert.excluded.data
    return insert.on_conflict_do_update(
        index_elements=["sha"], set_={"data": excluded}, where=blob_table.c.data != excluded
    )


def _insert(dialect: str, table: Table) -> Any:
    """Return the engine's own INSERT, which can say what to do where the row exists."""
    return (postgresql.insert if dialect == "postgresql" else sqlite.insert)(table)
