"""JSON that somebody else's program printed, taken apart without trust in its shape."""

from __future__ import annotations

import json
from typing import Any

MAX_STARTS = 20  # places at which a document may begin


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(output: bytes) -> str:
    return output.decode("utf-8", "surrogateescape")


def document(output: bytes) -> Any:
    """The JSON value that an output is, or that its last part is: some print remarks before it."""
    text = _text(output)
    found, at = _loads(text), -1
    for _ in range(MAX_STARTS):
        if found is not None:
            break
        starts = [place + 1 for mark in ("\n{", "\n[") if (place := text.find(mark, at + 1)) >= 0]
        if not starts:
            break
        at = min(starts)
        found = _loads(text[at:])
    return found


def events(output: bytes) -> list[dict[str, Any]]:
    """The objects of JSON lines; what is none is passed over."""
    return [found for line in _text(output).split("\n") if isinstance(found := _loads(line), dict)]


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def count(*values: Any) -> int | None:
    """The sum of counts, None if none of them is one."""
    whole = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
    return sum(whole) if whole else None


def usd_of(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < float("inf") else None
