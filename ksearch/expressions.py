"""Small arithmetic over axes, for shapes and floors: `4 * (m * k + k * n)`. Parsed by `ast`, never `eval`.

Allowed: whole and decimal numbers, axis names, `+ - * / // % **`, brackets, and the functions
min, max, ceil, floor, sqrt, log2. Nothing else parses, so a task file cannot run code.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ksearch.syntax import parse_expression

Number = int | float

MAX_LENGTH = 500  # characters
MAX_NODES = 300  # of the syntax tree: bounds the recursion
MAX_POWER = 16
LIMIT = 2**63  # of every intermediate result: no formula can eat memory

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "log2": math.log2,
}
_PAIRS = ("min", "max")  # two arguments or more; the other functions take one


class ExpressionError(ValueError):
    """A formula that is not small arithmetic over the known names, or has no finite value."""


def evaluate(text: str, names: Mapping[str, Number]) -> Number:
    """The value of `text` with the axes in `names`.

    Raises:
        ExpressionError: not an allowed expression, an unknown name, division by zero, or a value
            beyond 2**63. The message quotes the offending part.
    """
    return _value(_parse(text), names, text)


def names_in(text: str) -> frozenset[str]:
    """The axes that `text` depends on.

    Raises:
        ExpressionError: `text` is not an allowed expression.
    """
    tree = _parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def _parse(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"a formula may have {MAX_LENGTH} characters, this one has {len(text)}")
    try:
        tree = parse_expression(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is not arithmetic: {error}") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError(f"{text!r} is too long: split the formula or simplify it")
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, text)
    elif isinstance(node, ast.Call):
        _check_call(node, text)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    elif not isinstance(node, ast.Name):
        part = ast.get_source_segment(text.strip(), node) or text
        raise ExpressionError(
            f"{part!r} is not allowed in a formula: use numbers, axis names, + - * / // % **, brackets, "
            f"{', '.join(_FUNCTIONS)}"
        )


def _check_call(node: ast.Call, text: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or node.keywords:
        part = ast.get_source_segment(text.strip(), node) or text
        raise ExpressionError(f"{part!r}: the functions of a formula are {', '.join(_FUNCTIONS)}")
    if len(node.args) < 2 if name in _PAIRS else len(node.args) != 1:
        raise ExpressionError(f"{name} takes {'two arguments or more' if name in _PAIRS else 'one argument'}")
    for argument in node.args:
        _check(argument, text)


def _value(node: ast.expr, names: Mapping[str, Number], text: str) -> Number:
    try:
        value: Any = _compute(node, names, text)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"{text!r} has no value for {dict(names)}: {error}") from None
    if isinstance(value, complex) or not -LIMIT <= value <= LIMIT:
        raise ExpressionError(f"{text!r} leaves the range of 64-bit numbers for {dict(names)}")
    number: Number = value
    return number


def _compute(node: ast.expr, names: Mapping[str, Number], text: str) -> Any:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)  # seen to by _check
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ExpressionError(f"{node.id!r} is no axis; the axes are {', '.join(names) or 'none'}")
        return names[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, names, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names, text), _value(node.right, names, text)
        if isinstance(node.op, ast.Pow) and abs(right) > MAX_POWER:
            raise ExpressionError(f"{text!r}: a power may be at most {MAX_POWER}, this one is {right}")
        return _OPERATORS[type(node.op)](left, right)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id](*(_value(argument, names, text) for argument in node.args))
