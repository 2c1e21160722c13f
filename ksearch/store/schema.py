"""The tables, and how an older store becomes a newer one.

Alembic is left out on purpose: four small tables that only ever grow need a version number and a list
of steps, each run in one transaction under the store's write lock. Alembic would bring three packages,
a second configuration file and scripts outside the package to do the same.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)

from ksearch.errors import StoreError

_tables = MetaData()

version = Table("ksearch_schema", _tables, Column("version", BigInteger, nullable=False))

# `seq` and `hash` are the end of the run's chain: appending compares and moves them in one step, and a
# log that lost its last events is found out.
runs = Table(
    "ksearch_runs",
    _tables,
    Column("run_id", String(100), primary_key=True),
    Column("created_at", Float(53), nullable=False),
    Column("meta", Text, nullable=False),
    Column("genesis", String(64), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("updated_at", Float(53), nullable=False),
)

events = Table(
    "ksearch_events",
    _tables,
    Column("run_id", String(100), ForeignKey("ksearch_runs.run_id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at", Float(53), nullable=False),
)

blobs = Table(
    "ksearch_blobs",
    _tables,
    Column("sha", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)


def _create(conn: Connection) -> None:
    _tables.create_all(conn)


# Step n makes version n+1 of version n. Never change a released step: add one.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create,)


def found_version(conn: Connection, where: str) -> int:
    """Return the schema version in the database; 0 where there is none yet.

    Raises:
        StoreError: it was made by a newer K-Search.
    """
    if not inspect(conn).has_table(version.name):
        return 0
    found = int(conn.execute(select(version.c.version)).scalar_one_or_none() or 0)
    if found > len(MIGRATIONS):
        raise StoreError(
            f"{where} was written by a newer K-Search (store version {found}; this one knows "
            f"{len(MIGRATIONS)}). Nothing was changed. Upgrade: pip install --upgrade k-search."
        )
    return found


def bring_up(conn: Connection, where: str) -> None:
    """Make the tables, or bring older ones up to date, inside the caller's write transaction."""
    found = found_version(conn, where)
    if found == len(MIGRATIONS):
        return
    if found == 0 and conn.dialect.name == "sqlite" and inspect(conn).get_table_names():
        raise StoreError(
            f"{where} is a database of another program. Nothing was changed. Name another file for the store."
        )
    for step in MIGRATIONS[found:]:
        step(conn)
    conn.execute(version.delete())
    conn.execute(version.insert().values(version=len(MIGRATIONS)))
