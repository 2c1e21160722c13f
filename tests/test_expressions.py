"""Formulas of a task file: right on arithmetic, harmless on everything else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.expressions import LIMIT, ExpressionError, evaluate, names_in

AXES = {"m": 6, "n": 7, "k": 8}
LEAVES = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["m", "n", "k"]))


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner)
    return st.one_of(
        binary.map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda e: f"-{e}"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        inner.map(lambda e: f"ceil({e})"),
    )


FORMULAS = st.recursive(LEAVES, _grow, max_leaves=8)


@given(FORMULAS)
def test_a_formula_has_the_value_that_python_gives_it(formula):
    try:
        expected = eval(formula, {"max": max, "ceil": math.ceil}, AXES)  # noqa: S307  made above, harmless
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="no value"):
            evaluate(formula, AXES)
        return
    assert evaluate(formula, AXES) == expected
    assert names_in(formula) == {name for name in AXES if name in formula.replace("max", "")}


@given(st.text(max_size=80))
def test_any_text_is_a_finite_number_or_an_expression_error(text):
    try:
        value = evaluate(text, AXES)
    except ExpressionError:
        return
    assert math.isfinite(value)
    assert abs(value) <= LIMIT


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__",
        "m.real",
        "[m][0]",
        "lambda: 1",
        "m if n else k",
        "m and n",
        "m < n",
        "'a' * m",
        "f'{m}'",
        "True",
        "1j",
        "(m := 3)",
        "abs(m)",
        "max(m)",
        "ceil(m, n)",
        "max(*[m], n)",
        "max(m, n, key=k)",
        "m; n",
        "m\nn",
        "",
        "m +",
        "m @ n",
        "m << 60",
        "~m",
        "not m",
        "\0",
    ],
)
def test_nothing_but_arithmetic_is_taken(text):
    with pytest.raises(ExpressionError):
        evaluate(text, AXES)


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9 ** 9",
        "2 ** 64",
        "1e308 * 10",
        "1e999",
        "k ** m ** n",
        "0 ** -1",
        "(-8) ** 0.5",
        "sqrt(-1)",
        "log2(0)",
    ],
)
def test_what_has_no_sensible_value_is_refused_at_once(text):
    with pytest.raises(ExpressionError):
        evaluate(text, AXES)


@pytest.mark.parametrize("text", ["(" * 240 + "m" + ")" * 240, "-" * 499 + "m", "+".join("m" * 240), "m" * 501])
def test_length_and_depth_are_bounded(text):
    try:
        evaluate(text, {**AXES, "m" * 501: 1})
    except ExpressionError:
        return
    assert "(" in text  # brackets alone add no depth


def test_an_unknown_name_is_named_with_the_axes():
    with pytest.raises(ExpressionError, match="'q' is no axis; the axes are m, n, k"):
        evaluate("m * q", AXES)


def test_whole_numbers_stay_whole():
    assert isinstance(evaluate("(m + n - 1) // n * k", AXES), int)
    assert evaluate("(m + n - 1) // n * k", AXES) == 8
