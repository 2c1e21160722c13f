"""A run as one file of JSON lines: shipped in git, opened without a database.

First line: the run. Then, in order, each event after the blobs that it is the first to mention. Last line:
how many events there are, so that a file cut short is found out. Appending to a run appends to its file.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ksearch.errors import Corrupt, StoreError
from ksearch.store.records import RunInfo, StoredEvent, blob_name, canonical, check_run_id
from ksearch.store.sql import Store

FORMAT = "ksearch-run"
VERSION = 1


def copy_run(source: Store, target: Store, run_id: str) -> None:
    """Copy a run, its events and blobs, hashes and times kept, to another store: all of it or nothing."""
    target.restore(source.run(run_id), source.records(run_id))


def export_run(store: Store, run_id: str, path: str | Path) -> None:
    """Write a run to a file, complete or not at all; a file that is there is replaced."""
    path = Path(path)
    run = store.run(run_id)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                _write(file, store, run)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).chmod(0o644)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as err:
        raise StoreError(f"{path} could not be written: {err.strerror}. Name another place.") from err


def import_run(store: Store, path: str | Path) -> RunInfo:
    """Take a run from an exported file into the store, all of it or nothing, and return it.

    Raises:
        Corrupt: the file is damaged or cut short; the message names the line.
        StoreError: it is no exported run, cannot be read, or the run is here already.
    """
    path = Path(path)
    try:
        lines = _lines(path)
        run = _header(path, lines)
        store.restore(run, _records(path, lines))
    except OSError as err:
        raise StoreError(f"{path} could not be read: {err.strerror}.") from err
    return run


def _write(file: IO[str], store: Store, run: RunInfo) -> None:
    events = 0
    head = {
        "format": FORMAT,
        "version": VERSION,
        "id": run.id,
        "created_at": run.created_at,
        "meta": run.meta,
    }
    file.write(canonical(head) + "\n")
    for record in store.records(run.id):
        if isinstance(record, bytes):
            file.write(canonical(_blob_line(record)) + "\n")
        else:
            events += 1
            file.write(canonical(asdict(record)) + "\n")
    file.write(canonical({"end": events}) + "\n")


def _blob_line(data: bytes) -> dict[str, Any]:
    """Return a blob as text where it is text, so that a difference between two files can be read."""
    try:
        return {"blob": blob_name(data), "text": data.decode()}
    except UnicodeDecodeError:
        return {"blob": blob_name(data), "base64": base64.b64encode(data).decode()}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        number = 0
        try:
            for number, text in enumerate(file, start=1):
                value = json.loads(text)
                if not isinstance(value, dict):
                    raise _broken(path, number, "not a JSON object")
                yield number, value
        except ValueError as err:  # not JSON, or not UTF-8
            raise _broken(path, number or 1, str(err)) from err


def _header(path: Path, lines: Iterator[tuple[int, dict[str, Any]]]) -> RunInfo:
    _, head = next(lines, (0, {}))
    if head.get("format") != FORMAT:
        raise StoreError(f"{path} is not an exported run: its first line does not say so.")
    if head.get("version") != VERSION:
        raise StoreError(
            f"{path} has format version {head.get('version')}; this K-Search reads {VERSION}. "
            "Upgrade: pip install --upgrade k-search."
        )
    events = _end_of(path)
    try:
        created_at = float(head["created_at"])
        return RunInfo(check_run_id(head["id"]), created_at, dict(head["meta"]), events, created_at)
    except (KeyError, TypeError, ValueError) as err:
        raise _broken(path, 1, f"the run is not described in full ({err})") from err


def _end_of(path: Path) -> int:
    last = "{}"
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for text in file:
            last = text
    try:
        end = json.loads(last)
    except ValueError:
        end = {}
    if not isinstance(end, dict) or not isinstance(end.get("end"), int):
        raise Corrupt(f"{path} was cut short: its last line is missing. Export the run again, or fetch the file again.")
    return int(end["end"])


def _records(path: Path, lines: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[StoredEvent | bytes]:
    for number, value in lines:
        try:
            if "blob" in value:
                yield _blob(path, number, value)
            elif "end" not in value:
                yield StoredEvent(int(value["seq"]), dict(value["body"]), str(value["hash"]), float(value["at"]))
        except (KeyError, TypeError, ValueError) as err:
            raise _broken(path, number, f"something is missing or of the wrong kind ({err})") from err


def _blob(path: Path, number: int, value: dict[str, Any]) -> bytes:
    data: bytes = value["text"].encode() if "text" in value else base64.b64decode(value["base64"], validate=True)
    if blob_name(data) != value["blob"]:
        raise _broken(path, number, f"the blob {value['blob']} does not match its name")
    return data


def _broken(path: Path, number: int, what: str) -> Corrupt:
    return Corrupt(f"{path}, line {number}: damaged: {what}. Export the run again, or fetch the file again.")
