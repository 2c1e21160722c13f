"""Language guides for writers: what pays in a language, and what its evaluator expects."""

from __future__ import annotations

from functools import cache
from importlib import resources

_FILES = {"cpp": "cpp.md", "python": "python_numpy.md"}


@cache
def guide(language: str) -> str:
    """The guide for a language, or nothing where there is none yet."""
    name = _FILES.get(language)
    return resources.files(__name__).joinpath(name).read_text("utf-8") if name else ""
