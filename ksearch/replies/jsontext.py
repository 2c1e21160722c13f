"""Strict JSON out of prose: whole objects only, and what is wrong with them said with line, column and cure.

No repair is attempted. A trailing comma or a comment is refused with its place, so that the refusal is in the log and
the model corrects itself; a repair that guesses wrong would edit the tree in silence.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NoReturn

from ksearch.replies.fences import Fenced, simple_blocks
from ksearch.replies.text import line_of

MAX_OBJECTS = 50
MAX_UNCLOSED = 8  # braces of prose that never close, each of which costs a scan to the end

_BRACES = re.compile(r'[{}"]')
_IN_STRING = re.compile(r'["\\]')
_LOOKS_LIKE_JSON = re.compile(r'\{\s*(?:"|\}|/[/*]|\Z)')
_LONE_SURROGATE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Found:
    """One outermost object of a reply."""

    line: int
    body: str
    closed: bool = True


class NotJson(ValueError):
    """Why a text is not strict JSON: place and cure."""


def loads(text: str, first_line: int = 1) -> object:
    """Strict JSON: no duplicated keys, no NaN or Infinity, no numbers out of range, no lone surrogates.

    Raises:
        NotJson: with line (counted from `first_line`), column and cure.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        raise NotJson(_explain(text, error, first_line)) from None
    except RecursionError:
        raise NotJson(f"line {first_line}: nested too deeply") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise NotJson(f"the key {key[:60]!r} occurs twice in one object: keep one")
        for part in (key, value):
            if isinstance(part, str) and _LONE_SURROGATE.search(part):
                raise NotJson(f"a string under {key[:60]!a} holds NUL or half a surrogate pair: remove it")
        made[key] = value
    return made


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON: write a finite number, or leave the key out")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJson(f"the number {digits[:40]} is out of range: write a finite number")
    return value


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise NotJson(f"the number {digits[:20]}… is out of range")
    return int(digits)


def _explain(text: str, error: json.JSONDecodeError, first_line: int) -> str:
    at = text[error.pos : error.pos + 12]
    before = text[: error.pos].rstrip()
    if at[:1] in ("]", "}") and before.endswith(","):
        column = len(before) - before.rfind("\n") - 1
        line = first_line + before.count("\n")
        return f"line {line}, column {column}: a comma before a closing bracket: JSON has no trailing commas, remove it"
    place = f"line {first_line + error.lineno - 1}, column {error.colno}"
    if at[:1] == ",":
        return f"{place}: a comma too many, remove it"
    word = re.match(r"[A-Za-z_]\w*", at)
    if at[:2] in ("//", "/*") or at[:1] == "#":
        return f"{place}: JSON has no comments, remove it"
    if at[:1] in ("'", "“", "‘", "`"):
        return f"{place}: JSON strings and keys need straight double quotes"
    if word is not None and word.group() in ("True", "False", "None"):
        return f"{place}: {word.group()} is Python; JSON has true, false and null"
    if word is not None:
        return f"{place}: {word.group()!r} must stand in double quotes"
    if "control character" in error.msg:
        return f"{place}: a raw line break or tab inside a string: write \\n or \\t"
    if error.pos >= len(text.rstrip()):
        return f"{place}: the object is cut off"
    return f"{place}: {error.msg} (at {at!r})"


def find_objects(text: str) -> list[Found] | str:
    """The outermost objects of a reply, fenced or bare, in order; a string says why the reply cannot be divided.

    An object inside another one, however broken the outer one is, is never returned.
    """
    fences = simple_blocks(text)
    starts = [fence.start for fence in fences]
    found: list[tuple[int, int, bool]] = []
    covered: list[tuple[int, int]] = []
    wasted = 0
    at = 0
    while (start := _next_brace(text, at, fences, starts)) is not None:
        end = _balanced_end(text, start)
        looks = _LOOKS_LIKE_JSON.match(text, start) is not None
        over_fence = end is not None and bisect_left(starts, end) > bisect_left(starts, start)
        if not looks and (end is None or over_fence):
            at = start + 1  # a brace of the prose
            if (wasted := wasted + 1) > MAX_UNCLOSED:
                return "too many braces that never close: put the one JSON object into a ```json block"
            continue
        at = len(text) if end is None else end
        covered.append((start, at))
        if looks or "edits" in text[start:at]:
            found.append((start, at, end is not None))
    found += [(f.start, f.end, f.closed) for f in fences if f.body.lstrip()[:1] == "{" and not _within(f, covered)]
    if len(found) > MAX_OBJECTS:
        return f"more than {MAX_OBJECTS} JSON objects: answer with one"
    bodies = {fence.start: fence for fence in fences}
    return [_found(text, item, bodies.get(item[0])) for item in sorted(found)]


def _found(text: str, item: tuple[int, int, bool], fence: Fenced | None) -> Found:
    start, end, closed = item
    if fence is None:
        return Found(line_of(text, start), text[start:end], closed)
    return Found(line_of(text, start) + 1, fence.body, closed)


def _within(fence: Fenced, covered: list[tuple[int, int]]) -> bool:
    before = bisect_left(covered, (fence.start, 0)) - 1
    return before >= 0 and fence.start < covered[before][1]


def _next_brace(text: str, at: int, fences: list[Fenced], starts: list[int]) -> int | None:
    """The next opening brace that stands in no fence."""
    while (at := text.find("{", at)) >= 0:
        before = bisect_right(starts, at) - 1
        if before < 0 or fences[before].end <= at:
            return at
        at = fences[before].end
    return None


def _balanced_end(text: str, start: int) -> int | None:
    """Position after the brace that closes the one at `start`; braces in double quotes do not count."""
    depth, at = 0, start
    while (match := _BRACES.search(text, at)) is not None:
        at = match.end()
        if match.group() == "{":
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if depth == 0:
                return at
        else:
            while (inner := _IN_STRING.search(text, at)) is not None and inner.group() == "\\":
                at = inner.start() + 2
            if inner is None:
                return None
            at = inner.end()
    return None
