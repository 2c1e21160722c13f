"""SQLite as the store's engine: which library, which journal, and what the file system can be trusted with.

Two things decide between the write-ahead log (WAL) and the slower rollback journal:

- SQLite 3.7.0 to 3.51.2 can damage a WAL database when two connections write and checkpoint at the same
  time (fixed in 3.51.3, and in the branches 3.50.7 and 3.44.6). Where Python's own SQLite has the fault
  and pysqlite3 brings a sound one, that is used.
- WAL needs shared memory between the processes, which network file systems do not give.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, StaticPool, create_engine, event

from ksearch.errors import StoreError

BUSY_TIMEOUT_S = 30.0
WRITE = "ksearch_write"  # execution option: this transaction will write
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs"})


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """Tell whether this SQLite version can damage a WAL database with two writers."""
    branches: dict[tuple[int, ...], tuple[int, ...]] = {(3, 44): (3, 44, 6), (3, 50): (3, 50, 7)}
    fixed_in = branches.get(version[:2], (3, 51, 3))
    return (3, 7, 0) <= version < fixed_in


def sound_module() -> tuple[ModuleType, bool]:
    """Return the SQLite module to use, and whether its WAL is sound."""
    if not has_wal_reset_bug(sqlite3.sqlite_version_info):
        return sqlite3, True
    try:
        other = importlib.import_module("pysqlite3")
    except ImportError:
        return sqlite3, False
    if has_wal_reset_bug(other.sqlite_version_info):
        return sqlite3, False
    return other, True


def file_system_of(path: Path, mounts: str) -> str:
    """Return the type of the file system that holds `path`, given the text of /proc/mounts; '' if unknown."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def is_network(kind: str) -> bool:
    """Tell whether shared memory between machines or through this file system cannot be relied on."""
    return kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")


def memory_engine() -> Engine:
    """Return an engine whose one connection holds a database in memory, gone when it is closed."""
    module, _ = sound_module()
    engine = create_engine(
        "sqlite://",
        module=module,
        poolclass=StaticPool,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )
    event.listen(engine, "begin", _begin)
    return engine


def file_engine(path: Path, *, readonly: bool) -> tuple[Engine, list[str]]:
    """Return an engine for the database file, and notes on what was decided for it.

    Raises:
        StoreError: the file or its folder is not there, or may not be used.
    """
    module, wal_is_sound = sound_module()
    notes: list[str] = []
    try:
        _check_place(path, readonly=readonly)
    except (OSError, ValueError) as err:
        raise StoreError(f"The store {path} cannot be reached: {getattr(err, 'strerror', err)}. {_ELSEWHERE}") from err
    wal = _may_use_wal(path, wal_is_sound, notes)
    mode = _mode(path, notes) if readonly else "mode=rwc"
    uri = f"file:{quote(str(path))}?{mode}"

    def connect() -> Any:
        conn = module.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None)
        # A damaged row may not be UTF-8: let it through to the hash check, which names it.
        conn.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        # EXTRA: without WAL a commit is durable only once the folder has forgotten the journal too.
        conn.execute(f"PRAGMA synchronous={'FULL' if wal else 'EXTRA'}")
        if readonly:
            conn.execute("PRAGMA query_only=ON")
        return conn

    engine = create_engine("sqlite://", module=module, creator=connect, poolclass=QueuePool, max_overflow=-1)
    event.listen(engine, "begin", _begin)
    if not readonly:
        # On a plain connection: the journal cannot be changed inside a transaction.
        _set_journal(connect, wal=wal, notes=notes)
    return engine, notes


def _begin(conn: Connection) -> None:
    """Start the transaction ourselves: a writer takes the write lock at once, so it cannot fail half-way."""
    write = conn.get_execution_options().get(WRITE, False)
    conn.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _check_place(path: Path, *, readonly: bool) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder. Name a file for the store, such as {path / 'ksearch.db'}.")
    if readonly:
        if not path.exists():
            raise StoreError(f"There is no store at {path}. Check the path, or start a run to make it.")
        if not os.access(path, os.R_OK):
            raise StoreError(f"The store {path} may not be read by this user. Cure: chmod u+r {path}.")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise StoreError(
            f"The folder {path.parent} for the store cannot be made: {err.strerror}. {_ELSEWHERE}"
        ) from err
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreError(f"The store {path} is read-only. Cure: chmod u+w {path}, or open it for viewing only.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        # SQLite keeps its journal beside the database, so the folder counts as well.
        raise StoreError(f"The folder {path.parent} is read-only for this user. {_ELSEWHERE}")


_ELSEWHERE = "Name another place for the store, such as /tmp/ksearch.db."


def _may_use_wal(path: Path, wal_is_sound: bool, notes: list[str]) -> bool:
    kind = file_system_of(path.parent, _mounts())
    if is_network(kind):
        notes.append(
            f"{path} is on a network file system ({kind}), where SQLite's WAL does not work: "
            "the slower rollback journal is used. For several machines use PostgreSQL."
        )
        return False
    if not wal_is_sound:
        notes.append(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug (fixed in 3.51.3): the slower rollback "
            "journal is used. Cure: pip install 'pysqlite3>=0.6.1', or a newer Python."
        )
    return wal_is_sound


def _mounts() -> str:
    try:
        return Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not Linux: the answer of PRAGMA journal_mode still tells


def _mode(path: Path, notes: list[str]) -> str:
    """Choose how a viewer opens the file; WAL needs helper files beside it, even for reading."""
    if os.access(path.parent, os.W_OK) or Path(f"{path}-shm").exists():
        return "mode=ro"
    if Path(f"{path}-wal").exists():
        raise StoreError(
            f"{path} was not closed cleanly and its folder is read-only, so its last events cannot be read. "
            f"Cure: copy {path.name} and {path.name}-wal together to a folder that can be written."
        )
    notes.append(f"{path.parent} is read-only: what another process adds now will not be seen.")
    return "immutable=1"


def _set_journal(connect: Any, *, wal: bool, notes: list[str]) -> None:
    wanted = "wal" if wal else "delete"
    conn = connect()
    try:
        conn.execute("PRAGMA schema_version").fetchone()  # reads the header: a foreign file fails here
        # Another process may be opening the same new file: changing the journal does not wait for it.
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while (found := _journal(conn, wanted)) != wanted and found == "locked" and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        conn.close()
    if found != wanted:
        notes.append(f"The journal is '{found}', not '{wanted}' as asked: the file system or a user of it refuses.")


def _journal(conn: Any, wanted: str) -> str:
    """Ask for a journal mode and return the one in force, or 'locked'."""
    found = str(conn.execute("PRAGMA journal_mode").fetchone()[0])
    if found == wanted:
        return found
    try:
        return str(conn.execute(f"PRAGMA journal_mode={wanted}").fetchone()[0])
    except (sqlite3.OperationalError, sound_module()[0].OperationalError) as err:
        if getattr(err, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return "locked"
        raise
