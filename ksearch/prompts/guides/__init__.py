"""Language guides for writers: what pays in a language, and what its evaluator expects.

A passage between `<!-- if: word, word -->` and `<!-- end -->` is for tasks that mention one of the words.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_FILES = {"cpp": "cpp.md", "python": "python_numpy.md", "triton": "triton.md", "cuda": "cuda.md"}
_ON_A_GPU = {"python": "python_torch.md"}  # where a language means something else there
_PASSAGE = re.compile(r"^<!-- if: ([^\n]*?) -->\n(.*?)^<!-- end -->\n+", re.MULTILINE | re.DOTALL)


def guide(language: str, about: str | None = None, device: str = "cpu") -> str:
    """The guide for a language, or nothing where there is none yet.

    Args:
        about: description and reference of the task; None: whole, with every passage.
        device: that programs run on; "cuda": a Python program gets torch tensors.
    """
    name = _ON_A_GPU.get(language) if device == "cuda" else None
    name = name or _FILES.get(language)
    return relevant(_text(name), about) if name else ""


def relevant(text: str, about: str | None) -> str:
    """A guide without the passages that the task has no use for, and without their marks."""

    def keep(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[1].split(",")]
        wanted = about is None or any(re.search(rf"\b{re.escape(w)}\b", about, re.IGNORECASE) for w in words if w)
        return f"{match[2].rstrip()}\n\n" if wanted else ""

    return _PASSAGE.sub(keep, f"{text.rstrip()}\n")


@cache
def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")
