"""What every reply goes through first: limits, characters, newlines, reasoning, refusals.

Nothing here looks at meaning. A text that passes is handed on whole, with newlines as `\\n`.
"""

from __future__ import annotations

import re

from ksearch.protocol import Refusal
from ksearch.types import Verdict

MAX_PLAN_CHARS = 200_000
MAX_PROGRAM_CHARS = 300_000
MAX_REASON_CHARS = 600

# `str.splitlines` would also split at form feeds and U+2028: inside a source file those are no line ends.
_NEWLINES = re.compile(r"\r\n?")
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_THINK_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>")
_THINK_CLOSE = re.compile(r"^</(?:think|thinking|reasoning)>[ \t]*$", re.MULTILINE)
_STARTS_WITH_ANSWER = re.compile(r"\s*(?:```|~~~|FILE:|\{)")
_SAYS_NO = re.compile(
    r"\b(?:I['’]?m sorry|I am sorry|I apologi[sz]e|I (?:cannot|can['’]t|can not|won['’]t|will not|must decline)"
    r"|I(?:['’]m| am) (?:unable|not able)|unable to (?:help|assist)|cannot (?:help|assist)|as an AI\b)",
    re.IGNORECASE,
)


def decode(raw: bytes) -> str:
    """The text of a stored reply. Bytes that are no UTF-8 become lone surrogates, which the parsers refuse by line."""
    return raw.decode("utf-8", "surrogateescape")


def refuse(verdict: Verdict, reason: str) -> Refusal:
    """A refusal whose reason is bounded and holds no raw control characters."""
    clean = "".join(c if c.isprintable() else " " for c in reason)
    return Refusal(verdict, clean if len(clean) <= MAX_REASON_CHARS else clean[: MAX_REASON_CHARS - 1] + "…")


def unparsable(reason: str) -> Refusal:
    return refuse(Verdict.UNPARSABLE, reason)


def normalise_newlines(text: str) -> str:
    """CRLF and lone CR become LF: the only change ever made to a source."""
    return _NEWLINES.sub("\n", text)


def line_of(text: str, position: int) -> int:
    """1-based line number of a position in the text."""
    return text.count("\n", 0, position) + 1


def excerpt(text: str, limit: int = 160) -> str:
    short = " ".join(text[: limit * 4].split())
    return short if len(short) <= limit else short[: limit - 1] + "…"


def prepare(text: str, finish: str | None, max_chars: int) -> str | Refusal:
    """The text without byte order mark, CRs and leading reasoning, or why it cannot be read.

    Args:
        text: the reply as it came. Bytes that were no UTF-8 arrive as lone surrogates and are refused here.
        finish: why the model stopped: "stop", "length", "content_filter", "refusal", "error" or None.
        max_chars: longer replies are refused without being looked at.
    """
    if (ended := _ended_badly(text, finish)) is not None:
        return ended
    if len(text) > max_chars:
        return unparsable(f"the reply has {len(text):,} characters; at most {max_chars:,} are read: answer shorter")
    if (bad := _UNREADABLE.search(text)) is not None:
        kind = "a NUL character" if bad.group() == "\0" else "a byte that is not valid UTF-8"
        return unparsable(f"line {line_of(text, bad.start())} holds {kind}: answer in plain UTF-8 text")
    answer = _without_reasoning(normalise_newlines(text.removeprefix("\ufeff")))
    if answer is None or not answer.strip():
        what = "is empty" if not text.strip() else "holds only reasoning and no answer"
        return refuse(Verdict.TRUNCATED, f"the reply {what}; the output limit may have been spent on reasoning")
    return answer


def _ended_badly(text: str, finish: str | None) -> Refusal | None:
    if finish == "length":
        reason = (
            f"the output limit cut the reply off after {len(text):,} characters: answer shorter, or raise the limit"
        )
        return refuse(Verdict.TRUNCATED, reason)
    if finish == "tool_call" and not text.strip():
        return unparsable("the model called a tool instead of answering: there are no tools here, answer in text")
    if finish == "error":
        return refuse(Verdict.TRUNCATED, f"the provider reported an error after {len(text):,} characters")
    if finish in ("content_filter", "refusal"):
        said = f": {excerpt(text)}" if text.strip() else ""
        return refuse(Verdict.REFUSED, f"the model or its provider declined to answer ({finish}){said}")
    return None


def _without_reasoning(text: str) -> str | None:
    """The text after a leading <think> block; None when that block never ends.

    Some chat templates put the opening tag into the prompt, so that a reply has only the closing one, on a line
    of its own.
    """
    if (opened := _THINK_OPEN.match(text)) is not None:
        _, closed, rest = text[opened.end() :].partition(f"</{opened.group(1)}>")
        return rest if closed else None
    if not _STARTS_WITH_ANSWER.match(text) and (end := _THINK_CLOSE.search(text)) is not None:
        return text[end.end() :]
    return text


def nothing_found(text: str, wanted: str) -> Refusal:
    """The refusal for a reply without a plan or program: the model says no, or wrote something else."""
    if (no := _SAYS_NO.search(text[:2000])) is not None:
        return refuse(Verdict.REFUSED, f"the model declines: {excerpt(text[max(0, no.start() - 40) :])}")
    return unparsable(f"{wanted}. The reply begins: {excerpt(text, 80)}")
