"""Code blocks of a reply: where each begins, and which fence ends it.

A fence may stand inside a docstring, a comment or a raw string, so the first closing line need not be the end. For
code, the block ends at the closing line up to which it reads as code; there is at most one, because at the level of
code a fence is a syntax error in Python and in C++ alike. Where there is none, the first closing line ends the block,
as CommonMark has it, and the block keeps its problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ksearch.replies.csource import CSource, read_c
from ksearch.replies.fences import FenceLine, fence_lines
from ksearch.replies.languages import Family, Language, by_suffix, by_tag, has_source_suffix
from ksearch.replies.pysource import PySource, read_python
from ksearch.replies.text import line_of

MAX_FENCE_LINES = 300
MAX_WORK_CHARS = 3_000_000  # read while looking for the ends of blocks

# Markdown around it (a heading, bold, a code span) is tolerated: the word FILE: makes it plain.
_FILE_LINE = re.compile(r"[#*`>\s]*FILE:[*`\s]*([^\s*`].*?)[*`\s]*")


class TooTangled(ValueError):
    """The fences of a reply cannot be sorted out within the work allowed."""


@dataclass(frozen=True, slots=True)
class Block:
    line: int  # of the opening fence
    tag: str
    name: str  # file name given with it; empty for none
    body: str
    closed: bool
    language: Language | None  # of those allowed; None: some other text
    source: CSource | PySource | None  # read as that language

    @property
    def problem(self) -> str:
        return self.source.problem if self.source is not None else ""

    def defines(self, symbol: str) -> bool:
        return self.source is not None and not self.source.problem and self.source.defines(symbol)


def read_as(family: Family, body: str) -> CSource | PySource:
    return read_c(body) if family == "c" else read_python(body)


class _Splitter:
    def __init__(self, text: str, languages: Sequence[Language], symbol: str) -> None:
        self.text = text
        self.languages = languages
        self.symbol = symbol
        self.lines = fence_lines(text)
        self.work = 0
        if len(self.lines) > MAX_FENCE_LINES:
            raise TooTangled(
                f"{len(self.lines)} fence lines; at most {MAX_FENCE_LINES} are read: answer with code only"
            )

    def split(self) -> list[Block]:
        blocks: list[Block] = []
        at, end = 0, 0
        while at < len(self.lines):
            opening = self.lines[at]
            tag, name = self._label(opening, end)
            block, last = self._block(at, tag, name)
            blocks.append(block)
            at, end = last + 1, self.lines[last].end
            if not block.closed:
                break
        return blocks

    def _label(self, opening: FenceLine, after: int) -> tuple[str, str]:
        """The tag and the file name: from the line FILE: before the fence, or behind the tag."""
        words = opening.info.split()
        tag = words[0].strip("{}").lstrip(".") if words else ""
        behind = words[1] if len(words) > 1 and has_source_suffix(words[1]) else ""
        before = self.text[after : opening.start].rstrip()
        match = _FILE_LINE.fullmatch(before[before.rfind("\n") + 1 :])
        name = match.group(1) if match is not None else behind
        if match is not None and behind and behind != name:
            raise TooTangled(f"line {line_of(self.text, opening.start)}: one block with two names, {name} and {behind}")
        return tag, name

    def _block(self, at: int, tag: str, name: str) -> tuple[Block, int]:
        opening = self.lines[at]
        line = line_of(self.text, opening.start)
        closers = [i for i in range(at + 1, len(self.lines)) if self.lines[i].closes(opening)]
        readers = self._languages(tag, name)
        labelled = bool(tag or name)
        first: Block | None = None
        for closer in closers if readers else ():
            body = self.text[opening.end : self.lines[closer].start]
            for language in readers:
                source = self._read(language, body)
                block = Block(line, tag, name, body, True, language, source)
                if not source.problem and (labelled or source.defines(self.symbol)):
                    return block, closer
                # Kept for its problem; an untagged block that never names the entry point is other text.
                first = first or (block if labelled or (source.problem and self.symbol in body) else None)
        if first is not None:
            return first, closers[0]
        if closers:
            body = self.text[opening.end : self.lines[closers[0]].start]
            return Block(line, tag, name, body, True, None, None), closers[0]
        body = self.text[opening.end :]
        return Block(line, tag, name, body, False, readers[0] if readers else None, None), len(self.lines) - 1

    def _languages(self, tag: str, name: str) -> list[Language]:
        if name and (language := by_suffix(name, self.languages)) is not None:
            tagged = by_tag(tag, self.languages) if tag else None
            return [tagged if tagged is not None and name.lower().endswith(tagged.suffixes) else language]
        if tag:
            found = by_tag(tag, self.languages)
            return [found] if found is not None else []
        return list({language.family: language for language in reversed(self.languages)}.values()) if not name else []

    def _read(self, language: Language, body: str) -> CSource | PySource:
        self.work += len(body)
        if self.work > MAX_WORK_CHARS:
            raise TooTangled("too many fences inside one another: answer with each file in one block")
        return read_as(language.family, body)


def split_blocks(text: str, languages: Sequence[Language], symbol: str) -> list[Block]:
    """The fenced blocks of a reply, in order; the last one may not be closed.

    Raises:
        TooTangled: with the reason, for a refusal.
    """
    return _Splitter(text, languages, symbol).split()
