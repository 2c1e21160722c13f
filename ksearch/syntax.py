"""Python's own parser, one text at a time.

CPython before 3.11.8 and 3.12.2 counts how deep a tree is for all threads together (its issue gh-106905): two threads
that parse at once end in `SystemError: AST constructor recursion depth mismatch`.
"""

from __future__ import annotations

import ast
import threading
import warnings

_ONE = threading.Lock()  # also since `catch_warnings` changes the whole process


def parse(text: str) -> ast.Module:
    """A module's syntax tree, without warnings: an odd escape in a string is not ours to report.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is none.
    """
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parse_expression(text: str) -> ast.expr:
    """The same for one expression."""
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body
