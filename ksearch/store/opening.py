"""From a path or URL to an open store."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ksearch.errors import StoreError
from ksearch.store.faults import explain_sqlite
from ksearch.store.portable import import_run
from ksearch.store.postgres import server_engine
from ksearch.store.sql import Store
from ksearch.store.sqlite import file_engine, memory_engine, sound_module

MEMORY = ":memory:"


def open_store(place: str | Path, *, readonly: bool = False) -> Store:
    """Open a store, making it where there is none (but not with `readonly`, which never writes).

    `place` is one of:
        a path, or sqlite:///path   a SQLite database
        postgresql://user@host/db   a PostgreSQL database (extra `postgres`)
        run.jsonl                   an exported run, for viewing only
        :memory:                    a database that is gone when it is closed

    Raises:
        StoreError: it cannot be opened; the message says why and what to do.
        Corrupt: what is there is damaged.
    """
    if "://" in str(place):
        url = _url(str(place))
        if url.get_backend_name() == "postgresql":
            name = f"The store {url.render_as_string(hide_password=True)}"
            return _prepared(Store(server_engine(url), name, readonly=readonly))
        place = url.database or ""
    if not str(place):
        raise StoreError("The store has no name. Give a path such as ksearch.db, or a postgresql:// URL.")
    if str(place) == MEMORY:
        return _prepared(Store(memory_engine(), "The store in memory"))
    return _open_file(Path(os.path.abspath(os.path.expanduser(place))), readonly=readonly)  # noqa: PTH100, PTH111


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as err:
        raise StoreError(
            "The store's URL cannot be understood. Give a path, sqlite:///path or postgresql://user@host/database."
        ) from err
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(
            f"A store cannot be kept in {url.get_backend_name()}. "
            "Give a path, sqlite:///path or postgresql://user@host/database."
        )
    return url


def _open_file(path: Path, *, readonly: bool) -> Store:
    if path.suffix == ".jsonl":
        return _open_exported(path)
    name = f"The store {path}"
    try:
        engine, notes = file_engine(path, readonly=readonly)
    except (sqlite3.Error, sound_module()[0].Error) as err:
        raise explain_sqlite(err, name) from err
    return _prepared(Store(engine, name, readonly=readonly, notes=notes))


def _open_exported(path: Path) -> Store:
    """Return a store in memory that holds the run of an exported file."""
    store = _prepared(Store(memory_engine(), f"The exported run {path}"))
    import_run(store, path)
    store.readonly = True
    return store


def _prepared(store: Store) -> Store:
    try:
        store.prepare()
    except StoreError:
        store.close()
        raise
    return store
