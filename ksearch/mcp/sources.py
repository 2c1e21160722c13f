"""A program as an agent hands it over, to the text that the parsers read: one way in for every program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ksearch.mcp.telling import refuse
from ksearch.protocol import Refusal
from ksearch.replies import canonical_source, parse_program, render_program
from ksearch.replies.languages import LANGUAGES
from ksearch.service.beginning import Setting
from ksearch.service.reading import ANY_LANGUAGE, ENTRY_POINT
from ksearch.types import Program

_FENCE = re.compile(r"^```", re.MULTILINE)
_AGAIN = "call again with source= (the whole file), or files= (name -> text)"


@dataclass(frozen=True, slots=True)
class Draft:
    """Either `source`, the text of the only file (or a reply with fenced blocks), or `files`, name -> text."""

    source: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def reply_text(draft: Draft, at: Setting) -> str:
    """The draft in the form of a writer's reply.

    Raises:
        AgentError: there is nothing in it, or a file's name cannot be used.
    """
    if bool(draft.source.strip()) == bool(draft.files):
        raise refuse("give either source or files" if draft.files else "there is no program in the call", _AGAIN)
    if draft.source and _FENCE.search(draft.source):
        return draft.source
    language = LANGUAGES[at.config.language or languages(at)[0]]
    files = draft.files or {language.file: draft.source}
    sources = {name: canonical_source(text) for name, text in files.items()}
    try:
        text = render_program(Program(sources, f"{next(iter(sources))}::{_symbol(at)}", language.name))
        return text if draft.files else text.partition("\n")[2]  # the only file needs no name
    except ValueError as error:
        raise refuse(str(error), _AGAIN) from error


def parsed(draft: Draft, at: Setting) -> Program:
    """Raises:
    AgentError: there is no program in it.
    """
    allowed = (at.config.language,) if at.config.language else languages(at)
    found = parse_program(reply_text(draft, at), languages=allowed, entry_point=_symbol(at))
    if isinstance(found, Refusal):
        raise refuse(f"no program in it: {found.reason}. Nothing was recorded", _AGAIN)
    return found


def languages(at: Setting) -> tuple[str, ...]:
    return at.spec.languages if at.spec else ANY_LANGUAGE


def _symbol(at: Setting) -> str:
    return (at.spec.entry_point if at.spec else ENTRY_POINT).rpartition("::")[2]
