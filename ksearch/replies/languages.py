"""What a fence's tag or a file's name says about its language. One table; nothing is guessed from content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Family = Literal["c", "python"]


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    family: Family  # which reader decides where a block of it ends
    tag: str  # written behind the fence
    file: str  # name of a program's only file when the reply gives none
    own_tags: frozenset[str]
    shared_tags: frozenset[str]  # of a related language: taken where no language allowed has them as its own
    suffixes: tuple[str, ...]


_C_TAGS = frozenset({"cpp", "c++", "cxx", "cc", "c", "h", "hpp"})
_PYTHON_TAGS = frozenset({"python", "py", "python3"})
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")

LANGUAGES: Mapping[str, Language] = {
    language.name: language
    for language in (
        Language("cpp", "c", "cpp", "kernel.cpp", _C_TAGS, frozenset(), (".cpp", ".cc", ".cxx", ".c", *_HEADERS)),
        Language(
            "cuda",
            "c",
            "cuda",
            "kernel.cu",
            frozenset({"cuda", "cu", "cuh"}),
            _C_TAGS,
            (".cu", ".cuh", ".cpp", ".cc", *_HEADERS),
        ),
        Language("python", "python", "python", "kernel.py", _PYTHON_TAGS, frozenset(), (".py",)),
        Language("triton", "python", "python", "kernel.py", frozenset({"triton"}), _PYTHON_TAGS, (".py",)),
    )
}

# Tags and suffixes of code that is none of ours: a reply in it is in the wrong language, not without code.
_FOREIGN_TAGS = frozenset(
    re.findall(
        r"\S+",
        "rust rs go java javascript js typescript ts kotlin swift fortran f90 julia opencl hip metal wgsl "
        "zig csharp cs ruby perl php mojo ptx asm haskell",
    )
)


def allowed(names: Sequence[str]) -> tuple[Language, ...]:
    """The languages of these names, in this order.

    Raises:
        ValueError: for a name that is not in the table.
    """
    for name in names:
        if name not in LANGUAGES:
            raise ValueError(f"no language {name!r}; there are {', '.join(LANGUAGES)}")
    return tuple(LANGUAGES[name] for name in names)


def by_tag(tag: str, languages: Sequence[Language]) -> Language | None:
    tag = tag.lower()
    for language in languages:
        if tag in language.own_tags:
            return language
    return next((language for language in languages if tag in language.shared_tags), None)


def by_suffix(path: str, languages: Sequence[Language]) -> Language | None:
    return next((language for language in languages if path.lower().endswith(language.suffixes)), None)


def is_code_tag(tag: str) -> bool:
    """Whether the tag names a programming language, ours or not."""
    tag = tag.lower()
    return tag in _FOREIGN_TAGS or by_tag(tag, tuple(LANGUAGES.values())) is not None


def has_source_suffix(path: str) -> bool:
    return by_suffix(path, tuple(LANGUAGES.values())) is not None
