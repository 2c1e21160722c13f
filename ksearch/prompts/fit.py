"""Fitting sections into a token budget: what must be there always is, the rest grows by priority.

Sections that stay the same during a run come first and are sized first, so that the start of the prompt is the
same text from call to call and providers can cache it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ksearch.errors import PromptTooLong

CHARS_PER_TOKEN = 3.5
STABLE_SHARE = 0.5  # of the limit: what the stable sections may grow to, as far as the others' minimum allows
GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Part:
    """One section as rendered. `stable`: the same in every prompt of this kind in a run."""

    name: str
    text: str
    stable: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: a system message and a user message made of parts, stable ones first."""

    system: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return GAP.join(p.text for p in self.parts)

    @property
    def stable_text(self) -> str:
        """The start of `text` that does not change during a run: a cache boundary may follow it."""
        return GAP.join(p.text for p in self.parts if p.stable)

    @property
    def canonical(self) -> bytes:
        """The bytes that are stored: JSON of the system text and the user text."""
        return json.dumps({"system": self.system, "text": self.text}, sort_keys=True, ensure_ascii=False).encode()

    @property
    def sha256(self) -> str:
        """Of `canonical`: also its address in the blob store."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def tokens(self) -> int:
        """An estimate: no tokenizer is asked."""
        return tokens(len(self.system) + len(GAP) + len(self.text))


@dataclass(frozen=True, slots=True)
class Section:
    """`least` is always there; `grow(limit)` gives the best text of at most `limit` characters."""

    name: str
    least: str = ""
    grow: Callable[[int], str] | None = None
    share: float = 1.0  # of the room at hand, in the first round: nobody takes all
    priority: int = 5  # in the second round, what is left is offered to the lowest number first
    stable: bool = False


def tokens(chars: int) -> int:
    return math.ceil(chars / CHARS_PER_TOKEN)


def fit(system: str, sections: Sequence[Section], max_tokens: int, what: str) -> Prompt:
    """Render the sections within the limit.

    Raises:
        PromptTooLong: what must be there is longer than the limit.
    """
    limit = int(max_tokens * CHARS_PER_TOKEN) - len(system) - len(GAP)
    least = sum(_cost(s.least) for s in sections)
    if least > limit:
        raise _too_long(what, system, sections, max_tokens)
    room = limit - least
    stable_least = sum(_cost(s.least) for s in sections if s.stable)
    stable_room = max(0, min(room, int(limit * STABLE_SHARE) - stable_least))
    texts = _grow([s for s in sections if s.stable], stable_room)
    room -= sum(_cost(text) for text in texts.values()) - stable_least
    texts |= _grow([s for s in sections if not s.stable], room)
    ordered = sorted(sections, key=lambda s: not s.stable)  # a stable sort: otherwise the order given
    return Prompt(system, tuple(Part(s.name, texts[s.name], s.stable) for s in ordered if texts[s.name]))


def _cost(text: str) -> int:
    return len(text) + len(GAP) if text else 0


def _grow(sections: Iterable[Section], room: int) -> dict[str, str]:
    ordered = sorted(sections, key=lambda s: s.priority)
    texts = {s.name: s.least for s in ordered}
    first = room
    for shared in (True, False):
        for section in ordered:
            offered = min(room, int(first * section.share)) if shared else room
            before = _cost(texts[section.name])
            if section.grow is None or (text := _grown(section, before + offered - len(GAP))) is None:
                continue
            if _cost(text) > before:
                texts[section.name] = text
                room -= _cost(text) - before
    return texts


def _grown(section: Section, limit: int) -> str | None:
    """What a section makes of a limit; None if it does not keep to it."""
    text = section.grow(limit) if section.grow and limit > 0 else ""
    return text if 0 < len(text) <= limit else None


def _too_long(what: str, system: str, sections: Sequence[Section], max_tokens: int) -> PromptTooLong:
    sizes = {"system": len(system)} | {s.name: _cost(s.least) for s in sections if s.least}
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:3]
    told = ", ".join(f"{name} {tokens(size):,}" for name, size in largest)
    return PromptTooLong(
        f"the {what} needs at least about {tokens(sum(sizes.values()) + len(GAP)):,} tokens ({told}) and the limit is "
        f"{max_tokens:,}: raise the limit, or use a model with a longer context; a long frontier gets shorter "
        f"with `ksearch command RUN prune NODE`, a writer's prompt with the brief form"
    )
