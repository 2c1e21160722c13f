"""Database errors become one clear message with the cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ksearch.errors import Corrupt, StoreError
from ksearch.store.sqlite import BUSY_TIMEOUT_S

_RESTORE = "Nothing was changed by this. Bring the file back from a backup, or the runs from exported files."

# SQLite's primary result code -> the error's type, what happened, and the cure. {name} is the store.
_SQLITE: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_NOTADB": (
        Corrupt,
        f"{{name}} is not a K-Search store, or its beginning was overwritten. {_RESTORE}",
    ),
    "SQLITE_CORRUPT": (Corrupt, f"{{name}} is damaged or was cut short. {_RESTORE}"),
    "SQLITE_FULL": (
        StoreError,
        "The disk that holds {name} is full: nothing of this step was stored, and all before it is safe. "
        "Free some space, then resume the run.",
    ),
    "SQLITE_READONLY": (StoreError, "{name} cannot be written: it, its folder or its disk is read-only."),
    "SQLITE_CANTOPEN": (
        StoreError,
        "{name} cannot be opened: this user may not use the file or its folder. Check both with ls -l.",
    ),
    "SQLITE_BUSY": (
        StoreError,
        f"{{name}} is locked: another process has kept it busy for {BUSY_TIMEOUT_S:.0f} s. "
        "Nothing was stored. Find that process (fuser FILE), or wait and try again.",
    ),
    "SQLITE_IOERR": (
        StoreError,
        "The disk failed while {name} was in use ({detail}). All that was acknowledged before is kept. "
        "Check the disk and its free space, then resume the run.",
    ),
    "SQLITE_TOOBIG": (
        StoreError,
        "Something is too large for {name} (SQLite keeps at most 1 GB in one piece).",
    ),
}

# PostgreSQL's SQLSTATE, by its beginning.
_POSTGRES: dict[str, str] = {
    "53100": "The disk of {name} is full: nothing of this step was stored. Free some space and resume.",
    "25006": "{name} is read-only here: a standby server, or a connection opened for viewing.",
    "28": "{name} refused the user or the password. Check the URL.",
    "3D": "{name} does not exist. Make it first: createdb NAME.",
    "42501": "The user of {name} may not do this. Grant CREATE on the schema, and SELECT, INSERT, UPDATE.",
}


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn what the database raises inside into a `StoreError` about the store called `name`."""
    try:
        yield
    except DBAPIError as err:
        raise _explain(err.orig or err, name) from err
    except SQLAlchemyError as err:
        raise StoreError(f"{name} could not be used: {_first_line(err)}.") from err


def explain_sqlite(err: BaseException, name: str) -> StoreError:
    """Return the message for an error of the SQLite module itself."""
    return _explain(err, name)


def _explain(err: BaseException, name: str) -> StoreError:
    detail = _first_line(err)
    code = "_".join(str(getattr(err, "sqlite_errorname", "")).split("_")[:2])
    if code in _SQLITE:
        kind, text = _SQLITE[code]
        return kind(text.format(name=name, detail=detail))
    state = str(getattr(err, "sqlstate", None) or "")
    for beginning, text in _POSTGRES.items():
        if state.startswith(beginning):
            return StoreError(text.format(name=name))
    if not state and not code:  # no answer from a server
        return StoreError(
            f"{name} cannot be reached: {detail}. Check that the server runs and that the URL is right. If this "
            "came in the middle of a run, resume it: that reads what was stored last."
        )
    return StoreError(f"{name} could not be used: {detail}. Nothing of this step was stored.")


def _first_line(err: BaseException) -> str:
    return (str(err).strip() or type(err).__name__).splitlines()[0].rstrip(".")
