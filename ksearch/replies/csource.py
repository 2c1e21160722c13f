"""Just enough C++ to say where code ends: comments, strings, brackets. The compiler judges everything else.

A block is read to find out whether its closing fence stands in a comment or raw string, and whether it defines the
entry point. No text is changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<line>//(?:\\\n|[^\n])*)
      |(?P<block>/\*)
      |(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\()
      |(?P<word>[A-Za-z_]\w*)
      |(?P<number>\.?\d(?:'?\w|[eEpP][+-]|\.)*)
      |(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
      |(?P<hash>\#)
      |(?P<bracket>[{}()\[\]])
      |(?P<backtick>`)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"\#[ \t]*(\w*)(?:\\\n|[^\n])*")
_PAIRS = {"}": "{", ")": "(", "]": "["}
_PROSE_DIRECTIVES = frozenset({"error", "warning", "pragma"})
_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "else", "endif"})
_UP_TO_BODY = re.compile(r"[\w\s:<>&*\->,\[\]()]*?\{")
_MAX_TAIL = 300  # characters between a parameter list and the body


@dataclass(frozen=True, slots=True)
class CSource:
    """A source that was read: `code` has the same length, with comments and strings blanked out."""

    code: str
    problem: str  # empty: brackets balance, comments end, nothing stands in it that cannot be code

    def defines(self, symbol: str) -> bool:
        """Whether a function of this name has a body here (a declaration or a call does not count)."""
        closing = _closing_parens(self.code)
        for match in re.finditer(rf"(?<![\w.>]){re.escape(symbol)}\s*\(", self.code):
            end = closing.get(match.end() - 1)
            if end is None:
                continue
            tail = self.code[end + 1 : end + 1 + _MAX_TAIL]
            body = _UP_TO_BODY.match(tail)
            if body is not None and _balances(body.group()):
                return True
        return False


def _balances(text: str) -> bool:
    depth = 0
    for mark in re.findall(r"[()]", text):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _closing_parens(code: str) -> dict[int, int]:
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for match in re.finditer(r"[()]", code):
        if match.group() == "(":
            stack.append(match.start())
        elif stack:
            pairs[stack.pop()] = match.start()
    return pairs


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.out: list[str] = []
        self.copied = 0
        self.stack: list[tuple[str, int]] = []
        self.problem = ""
        self.conditional = False
        self.directive_end = -1
        self.line_end = -1  # up to here no directive can begin

    def read(self) -> CSource:
        at = 0
        while (match := _TOKEN.search(self.text, at)) is not None:
            at = self._take(match)
        if not self.problem and not self.conditional and self.stack:
            mark, position = self.stack[-1]
            self.problem = f"line {self._line(position)}: this '{mark}' is never closed"
        self.out.append(self.text[self.copied :])
        return CSource("".join(self.out), self.problem)

    def _take(self, match: re.Match[str]) -> int:
        kind = match.lastgroup
        start, end = match.start(), match.end()
        if kind in ("line", "string"):
            return self._blank(start, end)
        if kind == "block":
            return self._blank_until("*/", start, end, "comment")
        if kind in ("raw", "delimiter"):
            return self._blank_until(f'){match.group("delimiter")}"', start, end, "raw string")
        if kind == "hash":
            return self._directive(start)
        if kind == "bracket" and start >= self.directive_end:
            self._bracket(match.group(), start)
        if kind == "backtick":
            self._fail(start, "a backtick outside strings and comments")
        return end

    def _blank(self, start: int, end: int) -> int:
        self.out.append(self.text[self.copied : start])
        self.out.append(re.sub(r"[^\n]", " ", self.text[start:end]))
        self.copied = end
        return end

    def _blank_until(self, mark: str, start: int, end: int, what: str) -> int:
        close = self.text.find(mark, end)
        if close < 0:
            self._fail(start, f"this {what} never ends")
            return self._blank(start, len(self.text))
        return self._blank(start, close + len(mark))

    def _directive(self, start: int) -> int:
        """Brackets in a preprocessor line do not count; text of #error and #pragma is skipped."""
        if start < max(self.directive_end, self.line_end):
            return start + 1
        if self.text[self.text.rfind("\n", 0, start) + 1 : start].strip():
            self.line_end = self.text.find("\n", start)
            self.line_end = len(self.text) if self.line_end < 0 else self.line_end
            return start + 1
        match = _DIRECTIVE.match(self.text, start)
        if match is None:
            return start + 1
        word = match.group(1)
        if word in _PROSE_DIRECTIVES:
            return self._blank(start, match.end())
        if word in _CONDITIONS:
            self.conditional = True
        line = match.group()
        if any(line.count(a) != line.count(b) for a, b in _PAIRS.items()):
            self.conditional = True  # a macro that opens or closes a bracket
        self.directive_end = match.end()
        return match.start(1) if word else start + 1

    def _bracket(self, mark: str, position: int) -> None:
        if mark in _PAIRS.values():
            self.stack.append((mark, position))
        elif self.stack and self.stack[-1][0] == _PAIRS[mark]:
            self.stack.pop()
        elif not self.conditional:
            self._fail(position, f"this '{mark}' closes nothing")

    def _fail(self, position: int, what: str) -> None:
        self.problem = self.problem or f"line {self._line(position)}: {what}"

    def _line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def read_c(text: str) -> CSource:
    """Read C++ or CUDA source. Linear in its length; any text at all can be given."""
    return _Reader(text).read()
