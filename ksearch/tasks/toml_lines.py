"""On which line of a TOML file a key stands: `tomllib` does not tell, and an error has to."""

from __future__ import annotations

import re
from collections.abc import Mapping

KeyPath = tuple[str | int, ...]  # ("workloads", 2, "axes"): tables by name, array entries by position

_ARRAY = re.compile(r"\[\[\s*([^\[\]]+?)\s*\]\]")
_TABLE = re.compile(r"\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_PART = r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_\-]+)"
_KEY = re.compile(rf"({_PART}(?:\s*\.\s*{_PART})*)\s*=(.*)$")


def index_lines(text: str) -> dict[KeyPath, int]:
    """Line numbers, counted from 1, of all tables and keys that start a line. Keys within an inline table
    are not in it: `line_of` gives the line of the table instead."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    current: KeyPath = ()
    closing = ""  # of the multi-line string that we are inside of
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if closing:
            closing = "" if closing in stripped else closing
        elif match := _ARRAY.match(stripped):
            path = _split(match[1])
            counts[path] = counts.get(path, 0) + 1
            current = _with_positions(path, counts)
            lines.setdefault(current, number)
        elif match := _TABLE.match(stripped):
            current = _with_positions(_split(match[1]), counts)
            lines.setdefault(current, number)
        elif match := _KEY.match(stripped):
            lines.setdefault((*current, *_split(match[1])), number)
            closing = next((q for q in ('"""', "'''") if match[2].count(q) % 2), "")
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of `path`, or of the innermost table around it. [a.b] alone makes a table `a`: its line too."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
        if inside := [line for key, line in lines.items() if key[:end] == path[:end]]:
            return min(inside)
    return None


def _split(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _with_positions(path: KeyPath, counts: Mapping[KeyPath, int]) -> KeyPath:
    """("workloads", "axes") -> ("workloads", 3, "axes"), where workloads is an array of tables."""
    result: list[str | int] = []
    for end in range(1, len(path) + 1):
        result.append(path[end - 1])
        if path[:end] in counts:
            result.append(counts[path[:end]] - 1)
    return tuple(result)
