"""Recorded replies: written by `Recorder`, one synced line each; answered again by `TranscriptModel`.

A line is JSON: {"format": 1, "role", "request_id", "model", "text", "finish", tokens, "usd", "seconds", "raw",
"prompt_sha256"}. Only "role" and "text" are needed, so a transcript can be written by hand.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ksearch.errors import ModelSetupError, TranscriptExhausted
from ksearch.models.base import Answer, Call, Model

FORMAT = 1
_NUMBERS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "usd", "seconds")


def prompt_sha256(call: Call) -> str:
    return hashlib.sha256(call.text.encode("utf-8", "surrogatepass")).hexdigest()


def as_bytes(text: str) -> bytes:
    """The bytes of a text, whatever it holds: stray bytes come back as they were, half a surrogate pair as itself."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def to_line(call: Call, answer: Answer) -> bytes:
    """One line of a transcript. Raw bytes that are just the text are not stored twice."""
    record: dict[str, Any] = {
        "format": FORMAT,
        "role": call.role,
        "request_id": call.request_id,
        "model": answer.model,
        "finish": answer.finish,
        **{name: getattr(answer, name) for name in _NUMBERS},
        "prompt_sha256": prompt_sha256(call),
        "text": answer.text,
    }
    if answer.raw != as_bytes(answer.text):
        try:
            record["raw"] = answer.raw.decode()
        except UnicodeDecodeError:
            record["raw_base64"] = base64.b64encode(answer.raw).decode()
    return json.dumps(record).encode() + b"\n"


class Recorder:
    """A model that answers as another does, and appends each answer to a file before it is used."""

    def __init__(self, inner: Model, path: Path) -> None:
        self.inner = inner
        self.path = path
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context_tokens(self) -> int | None:
        return self.inner.context_tokens

    def complete(self, call: Call) -> Answer:
        answer = self.inner.complete(call)
        self._append(to_line(call, answer))
        return answer

    def _append(self, line: bytes) -> None:
        """Whole lines only, also beside other processes and after a crash in the middle of one."""
        with self._lock, self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                data = os.pread(file.fileno(), size, 0)
                file.truncate(data.rfind(b"\n") + 1)  # a line that a crash left unfinished
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


class TranscriptModel:
    """Answers with recorded replies.

    By "request" (where the file has request ids): the reply recorded for that role and request, the next one if it is
    asked again. By "order": the next reply of that role, whatever is asked; `answers_before` and `skip` place a resumed
    run.
    """

    context_tokens: int | None = None

    def __init__(self, path: Path, by: Literal["request", "order"] | None = None) -> None:
        self.path = path
        self.name = f"transcript:{path}"
        records = _read(path)
        has_ids = all(record.get("request_id") for record in records)
        self.by = by or ("request" if has_ids else "order")
        if self.by == "request" and not has_ids:
            raise ModelSetupError(f"{path}: some lines have no request_id, so replies can only be taken by order")
        self._replies: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        self._next: dict[tuple[str, str], int] = defaultdict(int)
        self._lock = threading.Lock()
        for record in records:
            self._replies[self._key(record["role"], record.get("request_id", ""))].append(record)

    def _key(self, role: str, request_id: str) -> tuple[str, str]:
        return role, request_id if self.by == "request" else ""

    def skip(self, role: str, replies: int) -> None:
        """Pass over replies that a run already has (by order)."""
        with self._lock:
            self._next[self._key(role, "")] += replies

    def complete(self, call: Call) -> Answer:
        key = self._key(call.role, call.request_id)
        with self._lock:
            at = self._next[key]
            if self.by == "request":
                at = max(at, call.answers_before)
            replies = self._replies.get(key, [])
            if at >= len(replies):
                what = f"request {call.request_id} of the {call.role}" if self.by == "request" else f"the {call.role}"
                raise TranscriptExhausted(
                    f"{self.path} has {len(replies)} replies to {what}, and number {at + 1} is asked for"
                )
            self._next[key] = at + 1
        return _answer(replies[at], call)


def _answer(record: Mapping[str, Any], call: Call) -> Answer:
    text: str = record["text"]
    raw = as_bytes(text)
    if "raw" in record:
        raw = record["raw"].encode()
    elif "raw_base64" in record:
        raw = base64.b64decode(record["raw_base64"])
    recorded = record.get("prompt_sha256")
    differs = recorded is not None and recorded != prompt_sha256(call)
    return Answer(
        text=text,
        raw=raw,
        finish=record.get("finish"),
        model=record.get("model") or "transcript",
        **{name: record[name] for name in _NUMBERS if record.get(name) is not None},
        notes=("recorded for another prompt",) if differs else (),
    )


def _read(path: Path) -> list[Mapping[str, Any]]:
    """All whole lines. An unfinished last line (no newline) is what a crash left, and is passed over."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelSetupError(f"cannot read the transcript {path}: {error.strerror}") from None
    lines = data.split(b"\n")
    records = []
    for number, line in enumerate(lines[:-1] if not _is_record(lines[-1]) else lines, 1):
        if not line.strip():
            continue
        if (problem := _problem(line)) is not None:
            raise ModelSetupError(f"{path}, line {number}: {problem}. Each line is one reply, as `--record` writes it")
        records.append(json.loads(line))
    return records


def _is_record(line: bytes) -> bool:
    return _problem(line) is None


def _problem(line: bytes) -> str | None:
    """What is wrong with a line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "not a JSON object in UTF-8"
    if not isinstance(record, dict):
        return "not a JSON object"
    if record.get("format", FORMAT) != FORMAT:
        return f"format {record['format']!r} is unknown; this version reads {FORMAT}"
    for key in ("role", "text"):
        if not isinstance(record.get(key), str):
            return f'"{key}" must be a string'
    for key in ("request_id", "finish", "model", "raw", "raw_base64", "prompt_sha256"):
        if not isinstance(record.get(key), str | None):
            return f'"{key}" must be a string'
    for key in _NUMBERS:
        value = record.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            return f'"{key}" must be a number of at least 0'
    return None
