"""JSON that stands within HTML: no character of it ends or opens an element, and no number is not one."""

from __future__ import annotations

import json
import math
from typing import Any

# Inside <script type="application/json"> a parser looks for "</script" and "<!--" only; all of these are escaped
# so that the text may be moved to any other place, too. JSON reads them back as they were.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029"}


def dumps(value: Any) -> str:
    """ASCII JSON text; what is not finite (a record may hold it) becomes null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def for_html(value: Any) -> str:
    return dumps(value).translate(_ESCAPES)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
