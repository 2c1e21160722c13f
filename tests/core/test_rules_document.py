"""The page of rules stays true: every rule names a test, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "algorithm.md"


def names_of_tests() -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_rules_*.py")]
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_rule_of_the_page_names_a_test_that_exists() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line.startswith("| ") and not line.startswith("| Rule ")]
    named = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert len(rules) > 80
    assert [rule for rule, names in zip(rules, named, strict=True) if len(names) != 1] == []
    assert {name for names in named for name in names} - names_of_tests() == set()
