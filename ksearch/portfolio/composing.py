"""From the chosen programs and the rule to one program, in the language they share."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ksearch.definition import TaskSpec
from ksearch.portfolio.choosing import PortfolioError
from ksearch.portfolio.native import compose_native
from ksearch.portfolio.pythonic import compose_python, visible_axes
from ksearch.portfolio.rule import Rule, leaves
from ksearch.types import Program

FAMILIES: Mapping[str, str] = {"cpp": "C++", "c": "C++", "cuda": "CUDA C++", "python": "Python", "triton": "Python"}


def family(language: str) -> str:
    """Languages of one family become one program: what one compiler, or one interpreter, takes together."""
    return FAMILIES.get(language, language)


def seen_axes(spec: TaskSpec, language: str) -> list[str]:
    """Axes that such a program sees and that some shape depends on: how inputs are drawn is no reason to choose."""
    if family(language) == "Python":
        return list(visible_axes(spec))
    words = {w for t in (*spec.inputs, *spec.outputs) for d in t.shape for w in re.findall(r"[A-Za-z_]\w*", str(d))}
    return [axis for axis in spec.axes if axis in words]


def compose(programs: Mapping[str, Program], rule: Rule, spec: TaskSpec) -> tuple[Program, list[str]]:
    """One program of those that the rule names, and what is worth knowing about it.

    Args:
        programs: by id; those of the rule are used.

    Raises:
        PortfolioError: they are of languages that do not go together, or a part cannot be kept as it is.
    """
    parts = [programs[id] for id in dict.fromkeys(leaf.program_id for leaf in leaves(rule))]
    kinds = sorted({family(p.language) for p in parts})
    if len(kinds) > 1:
        raise PortfolioError(
            f"programs in {' and '.join(kinds)} cannot become one program: choose those of one language with --program"
        )
    if kinds[0] == "Python":
        return compose_python(parts, rule, spec)
    if kinds[0] not in FAMILIES.values():
        raise PortfolioError(f"there is no portfolio for language {parts[0].language}: {', '.join(FAMILIES)} have one")
    return compose_native(parts, rule, spec), []
