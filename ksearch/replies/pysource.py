"""Whether a text is Python, and what it defines. It is parsed, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ksearch.syntax import parse


@dataclass(frozen=True, slots=True)
class PySource:
    problem: str  # empty: it parses
    names: frozenset[str]  # functions, classes and variables of the module

    def defines(self, symbol: str) -> bool:
        return symbol in self.names


def read_python(text: str) -> PySource:
    """Parse Python source. Any text at all can be given."""
    try:
        tree = parse(text)
    except SyntaxError as error:
        return PySource(f"line {error.lineno or 1}: {error.msg}", frozenset())
    except (ValueError, RecursionError, MemoryError) as error:
        return PySource(f"Python cannot parse it: {type(error).__name__}", frozenset())
    return PySource("", frozenset(_names(tree.body)))


def _names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names bound at the top level, also inside `if`, `try` and `with`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _names(statement.body)
            yield from _names(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _names(handler.body)
