"""Strict JSON: a number that is not finite goes out as null, and its place and value are named beside it."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.responses import Response

NON_FINITE = "non_finite"


def dumps(value: Any) -> bytes:
    """JSON bytes of `value`. When it is an object with NaN or infinities within, it gains the member `non_finite`:
    {"/path/to/it": "NaN"}."""
    try:
        return _encode(value)
    except ValueError:
        found: dict[str, str] = {}
        cleaned = _clean(value, "", found)
        return _encode({**cleaned, NON_FINITE: found} if isinstance(cleaned, dict) else cleaned)


def _encode(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate cannot be UTF-8; it is shown as what it is, a character that is none.
    return text.encode("utf-8", "replace")


def _clean(value: Any, where: str, found: dict[str, str]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        found[where] = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return None
    if isinstance(value, dict):
        return {str(key): _clean(item, f"{where}/{key}", found) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, f"{where}/{i}", found) for i, item in enumerate(value)]
    return value


class StrictJSON(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dumps(content)
