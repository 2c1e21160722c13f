"""A small reader of fences and headings, independent of the code under test (CommonMark's rules)."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")


def headings(text: str) -> list[str]:
    """Headings outside fences; fails on a fence that is still open at the end."""
    found: list[str] = []
    fence = ""
    for line in re.split(r"\r\n|\n|\r|\u2028|\u2029|\x0b|\x0c|\x85", text):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
        elif line.startswith("#"):
            found.append(line)
    assert not fence, "a fence is still open at the end"
    return found
