"""Markdown fences, as CommonMark has them, but only at the very start of a line.

An indented or mid-line fence never counts: code may hold it. Which closing line ends a block of code is decided in
`ksearch.replies.blocks`, because a fence may also stand inside a docstring.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN = re.compile(r"^(`{3,})([^`\n]*)$|^(~{3,})([^\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FenceLine:
    start: int  # of the line
    end: int  # after its newline, or the end of the text
    mark: str  # "```"
    info: str  # "cpp kernel.cpp"; empty for a line that may also close

    def closes(self, opening: FenceLine) -> bool:
        return not self.info and self.mark[0] == opening.mark[0] and len(self.mark) >= len(opening.mark)


def fence_lines(text: str) -> list[FenceLine]:
    """Every line that could open or close a block, in order. Linear in the text."""
    lines = []
    for match in _OPEN.finditer(text):
        mark, info = (match.group(1), match.group(2)) if match.group(1) else (match.group(3), match.group(4))
        lines.append(FenceLine(match.start(), min(match.end() + 1, len(text)), mark, info.strip()))
    return lines


@dataclass(frozen=True, slots=True)
class Fenced:
    start: int  # of the opening line
    end: int  # after the closing line
    info: str
    body: str
    closed: bool


def simple_blocks(text: str) -> list[Fenced]:
    """Blocks ended by the first line that can close them: right for JSON, whose strings hold no line breaks."""
    blocks: list[Fenced] = []
    opening: FenceLine | None = None
    for line in fence_lines(text):
        if opening is None:
            opening = line
        elif line.closes(opening):
            blocks.append(Fenced(opening.start, line.end, opening.info, text[opening.end : line.start], closed=True))
            opening = None
    if opening is not None:
        blocks.append(Fenced(opening.start, len(text), opening.info, text[opening.end :], closed=False))
    return blocks
