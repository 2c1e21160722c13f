"""What the store keeps, and the hash chain that ties it together."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ksearch.errors import Corrupt, StoreError

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
BLOB_NAME = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run: `seq` is its last event (0: none yet). Times are seconds since 1970, UTC."""

    id: str
    created_at: float
    meta: dict[str, Any]
    seq: int
    updated_at: float


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """Event `seq` (from 1) of a run. `at` is when it was stored, seconds since 1970, UTC; not hashed."""

    seq: int
    body: dict[str, Any]
    hash: str
    at: float


@dataclass(frozen=True, slots=True)
class Link:
    """A place in a run's hash chain: the event number and the hash up to and including it."""

    seq: int
    hash: str


def canonical(value: Mapping[str, Any]) -> str:
    """Return the one JSON text of `value`: sorted keys, no spaces, no escapes beyond what JSON needs.

    Raises:
        StoreError: not JSON (NaN, infinity, an object of some class) or not valid Unicode.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as err:
        raise StoreError(f"This cannot be kept as JSON: {err}. Nothing was stored.") from err
    return text


def check_run_id(run_id: str) -> str:
    """Return `run_id`, which must be safe as a file name and in a URL.

    Raises:
        StoreError: it is not.
    """
    if not RUN_ID.fullmatch(run_id):
        raise StoreError(
            f"{run_id!r} cannot name a run: use 1 to 100 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit."
        )
    return run_id


def first_link(run_id: str, meta_text: str) -> Link:
    """Return where a run's chain begins: the hash of its name and of what it was started with."""
    return Link(0, _digest(f"{run_id}\n{meta_text}"))


def next_link(link: Link, body_text: str) -> Link:
    """Return the link of the event that follows `link`."""
    return Link(link.seq + 1, _digest(link.hash + body_text))


def _digest(text: str) -> str:
    # surrogateescape: a damaged row may hold bytes that are not UTF-8; it must fail by its hash, by name.
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def open_event(where: str, link: Link, row: tuple[int, str, str, float]) -> StoredEvent:
    """Check one stored row (seq, body, hash, at) against the link before it, and decode it.

    Raises:
        Corrupt: an event is missing before it, or its text and its hash do not belong together.
    """
    seq, text, digest, at = row
    expected = next_link(link, text)
    if seq != expected.seq:
        raise Corrupt(damaged(where, expected.seq, f"it is missing (the next one present is {seq})"))
    if digest != expected.hash:
        raise Corrupt(damaged(where, seq, "its text and its hash do not belong together: one was changed"))
    return StoredEvent(seq, json.loads(text), digest, at)


def damaged(where: str, seq: int, what: str) -> str:
    """Return the message for event `seq` of the run described by `where`."""
    sound = f"Events 1 to {seq - 1} are sound. " if seq > 1 else ""
    return (
        f"{where}: event {seq} is damaged: {what}. {sound}"
        "Nothing was changed. Bring the store back from a backup, or the run from an exported file."
    )


def blob_name(data: bytes) -> str:
    """Return the name of a blob: its SHA-256, 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def mentioned_blobs(texts: Iterable[str]) -> list[str]:
    """Return each SHA-256 that the JSON texts mention, once, in order of appearance."""
    return list(dict.fromkeys(name for text in texts for name in BLOB_NAME.findall(text)))
