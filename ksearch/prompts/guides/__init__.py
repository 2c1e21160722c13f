"""Language guides for writers: what pays in a language, and what its evaluator expects.

A passage between `<!-- if: word, word -->` and `<!-- end -->` is for tasks that mention one of the words.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_FILES = {"cpp": "cpp.md", "python": "python_numpy.md", "triton": "triton.md", "cuda": "cuda.md"}
_BRIEF = {"cpp": "cpp_brief.md"}  # for small models: helpers to copy, each under a line that a planner is shown
_ON_A_GPU = {"python": "python_torch.md"}  # where a language means something else there
_PASSAGE = re.compile(r"^<!-- if: ([^\n]*?) -->\n(.*?)^<!-- end -->\n+", re.MULTILINE | re.DOTALL)


def guide(language: str, about: str | None = None, device: str = "cpu", *, brief: bool = False) -> str:
    """The guide for a language, or nothing where there is none yet.

    Args:
        about: description and reference of the task; None: whole, with every passage.
        device: that programs run on; "cuda": a Python program gets torch tensors.
        brief: the short form, for small local models; nothing where a language has none.
    """
    name = _ON_A_GPU.get(language) if device == "cuda" else None
    name = _BRIEF.get(language) if brief else name or _FILES.get(language)
    return relevant(_text(name), about) if name else ""


def relevant(text: str, about: str | None) -> str:
    """A guide without the passages that the task has no use for, and without their marks."""

    def keep(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[1].split(",")]
        wanted = about is None or any(re.search(rf"\b{re.escape(w)}\b", about, re.IGNORECASE) for w in words if w)
        return f"{match[2].rstrip()}\n\n" if wanted else ""

    return _PASSAGE.sub(keep, f"{text.rstrip()}\n")


def headlines(text: str) -> list[str]:
    """What stands in bold in a line of its own: the means that a guide has to offer."""
    return re.findall(r"^\*\*([^*\n]+)\*\*$", text, re.MULTILINE)


@cache
def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")
