"""Foreign text (titles, logs, sources, reasons) made fit to stand in a prompt or on a screen.

Models and programs write these texts. None of them may end a fence, open a heading, or hide in characters that
a reader does not see.
"""

from __future__ import annotations

import re

from ksearch.types import Ratio

# Control and format characters, line separators that are no "\n", halves of surrogate pairs. Tab and "\n" stay.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_TICKS = re.compile("`+")
NOISY = 1.1  # high / low of a 95% interval: its rounds disagree


def visible(text: str) -> str:
    """Newlines as `\\n`; every character that would not be seen is written out as its code."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def one_line(text: str, limit: int = 200) -> str:
    """Foreign text as part of one line: at most `limit` characters, white space folded, nothing hidden."""
    cut = text[: 4 * limit + 400]  # folding a text of a megabyte would only take time
    return clip(visible(" ".join(cut.split())), limit)


def quoted(text: str, limit: int = 160) -> str:
    """Foreign text in double quotes, which it cannot leave."""
    return f'"{one_line(text, limit).replace(chr(34), chr(39))}"'


def cell(text: str, limit: int = 60) -> str:
    """Foreign text in a table's cell, or at the start of a list item: no mark of Markdown begins it."""
    return one_line(text, limit).replace("|", "/").replace("`", "'").lstrip("#~>+-=*_ ")


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…" if limit > 0 else ""


def fenced(text: str, info: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in the text."""
    body = visible(text)
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{body}{'' if body.endswith(chr(10)) or not body else chr(10)}{fence}"


def head(text: str, limit: int) -> str:
    """Whole lines from the start, within `limit` characters, and a mark for what is missing."""
    if len(text) <= limit:
        return text
    mark = f"[... {len(text) - limit:,} more characters]"
    kept = text[: max(0, limit - len(mark) - 1)]
    return _join(kept.rpartition("\n")[0] or kept, mark) if kept else ""


def tail(text: str, limit: int) -> str:
    """Whole lines from the end, within `limit` characters, and a mark for what is missing."""
    if len(text) <= limit:
        return text
    mark = f"[{len(text) - limit:,} characters before ...]"
    room = limit - len(mark) - 1
    kept = text[len(text) - room :] if room > 0 else ""
    return _join(mark, kept.partition("\n")[2] or kept) if kept else ""


def ends(text: str, limit: int) -> str:
    """Whole lines from both ends, two thirds of them from the start: code keeps its signature and its result."""
    if len(text) <= limit:
        return text
    mark = f"[... {len(text) - limit:,} characters left out ...]"
    room = limit - len(mark) - 2
    if room < 40:
        return ""
    start, end = text[: room * 2 // 3], text[len(text) - room // 3 :]
    return _join(start.rpartition("\n")[0] or start, mark, end.partition("\n")[2] or end)


def _join(*pieces: str) -> str:
    return "\n".join(pieces)


# --- numbers -----------------------------------------------------------------------------------------------------


def times(value: float) -> str:
    return f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def ratio(value: Ratio) -> str:
    """A ratio and its 95% interval: 1.83x [1.80, 1.86]."""
    return f"{times(value.value)} [{value.low:.3g}, {value.high:.3g}]"


def paired(value: Ratio) -> str:
    """A workload's ratio from paired rounds; with its interval where they disagree."""
    noisy = value.low > 0 and value.high / value.low > NOISY
    return f"{times(value.value)} noisy [{value.low:.3g}, {value.high:.3g}]" if noisy else times(value.value)


def score(speedup: Ratio) -> str:
    """The paper's J, times 100 as it is shown to a model: the baseline has 100."""
    return f"{100 * speedup.value:.0f}"


def ms(value: float) -> str:
    return f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
