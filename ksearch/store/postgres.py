"""PostgreSQL as the store's engine, for teams and clusters; needs the extra `postgres`."""

from __future__ import annotations

from sqlalchemy import URL, Connection, Engine, create_engine, event, text

from ksearch.errors import StoreError
from ksearch.store.sqlite import WRITE

# Any number, the same for every K-Search: two processes that make the tables at once take turns on it.
SCHEMA_LOCK = 0x6B736561726368


def server_engine(url: URL) -> Engine:
    """Return an engine for a PostgreSQL URL. It does not connect yet.

    Raises:
        StoreError: the driver (psycopg 3) is not installed.
    """
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args={"connect_timeout": 10}
        )
    except ImportError as err:
        raise StoreError(
            "A PostgreSQL store needs the driver psycopg, which is not installed. "
            "Cure: pip install 'k-search[postgres]'."
        ) from err
    event.listen(engine, "begin", _begin)
    return engine


def lock_schema(conn: Connection) -> None:
    """Wait until no other process is making or changing the tables; held until the transaction ends."""
    conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})


def _begin(conn: Connection) -> None:
    if not conn.get_execution_options().get(WRITE, False):
        conn.exec_driver_sql("SET TRANSACTION READ ONLY")
