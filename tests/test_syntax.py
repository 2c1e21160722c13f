"""Many threads parse Python: prompts are rendered while replies are read and programs are looked through."""

from __future__ import annotations

import ast
import gc
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ksearch
from ksearch.syntax import parse, parse_expression

PACKAGE = Path(ksearch.__file__).parent


class Finalized:
    """In a cycle, so that the collector calls `__del__` in the middle of somebody's tree, where threads may change."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        for _ in range(3):
            pass


def test_threads_that_parse_at_once_all_get_their_tree() -> None:
    """In CPython 3.11.7 a thread that ran in the middle of another one's tree spoilt the count of its depth."""
    text = "\n".join(f"def f{i}(x):\n    return [x + {i} * (y - 1) for y in range(x) if y > {i}]" for i in range(50))
    wanted, collecting, switching = ast.dump(ast.parse(text)), gc.get_threshold(), sys.getswitchinterval()

    def trees(_: int) -> set[str]:
        return {ast.dump(parse(text)) for _ in range(4) if Finalized()}

    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = set().union(*pool.map(trees, range(16)))
    finally:
        gc.set_threshold(*collecting)
        sys.setswitchinterval(switching)
    assert found == {wanted}


def test_odd_escapes_are_no_warnings_and_no_python_is_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse('x = "\\d"').body
    with pytest.raises(SyntaxError):
        parse("def")
    assert isinstance(parse_expression("2 * n"), ast.BinOp)


def test_nothing_else_parses() -> None:
    """Else the two could meet. What is run by itself (tasks' own code, the sandbox) is another process."""
    alone = {PACKAGE / "syntax.py", *(PACKAGE / "redteam").rglob("*.py")}
    assert [p for p in PACKAGE.rglob("*.py") if p not in alone and "ast.parse(" in p.read_text("utf-8")] == []
