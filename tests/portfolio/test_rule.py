"""The rule: as small as it can be, right on what was measured, and an answer for every other size."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ksearch.definition import Workload
from ksearch.portfolio.choosing import Choice
from ksearch.portfolio.rule import MOST_LEAVES, Rule, Split, find_rule, leaves, pick
from tests.portfolio.history import ratio

Point = tuple[dict[str, int], str]


def ruled(points: Sequence[Point], visible: Sequence[str], equal: dict[int, set[str]] | None = None) -> Rule:
    programs = sorted({program for _, program in points})
    workloads = [Workload(f"w{i}", axes) for i, (axes, _) in enumerate(points)]
    assigned = {f"w{i}": program for i, (_, program) in enumerate(points)}
    same = {f"w{i}": frozenset({p} | (equal or {}).get(i, set())) for i, (_, p) in enumerate(points)}
    over = {p: {n: ratio(2.0 if p in same[n] else 1.0) for n in assigned} for p in programs}
    return find_rule(Choice("best", assigned, same, over), workloads, visible)


def test_one_axis_is_cut_at_the_geometric_mean_of_the_two_sizes_beside_the_cut() -> None:
    rule = ruled([({"n": 16}, "a"), ({"n": 64}, "a"), ({"n": 1024}, "b")], ["n"])
    assert isinstance(rule, Split)
    assert (rule.feature, rule.limit) == (("n",), 256)
    assert [pick(rule, {"n": n}) for n in (1, 256, 257, 10**9)] == ["a", "a", "b", "b"]


def test_the_axis_with_the_widest_gap_is_taken() -> None:
    points = [({"n": 100, "m": 10}, "a"), ({"n": 120, "m": 1000}, "b")]
    rule = ruled(points, ["n", "m"])
    assert isinstance(rule, Split)
    assert rule.feature in {("m",), ("n", "m")}


def test_a_product_is_used_where_no_single_axis_is_enough() -> None:
    points = [({"n": 4, "m": 64}, "a"), ({"n": 64, "m": 4}, "a"), ({"n": 4, "m": 512}, "b"), ({"n": 512, "m": 4}, "b")]
    rule = ruled(points, ["n", "m"])
    assert isinstance(rule, Split)
    assert rule.feature == ("n", "m")
    assert len(list(leaves(rule))) == 2


def test_where_two_programs_are_equal_the_shorter_rule_wins() -> None:
    points = [({"n": 1}, "a"), ({"n": 10}, "b"), ({"n": 100}, "a"), ({"n": 1000}, "b")]
    assert len(list(leaves(ruled(points, ["n"])))) == 4
    assert len(list(leaves(ruled(points, ["n"], {1: {"a"}})))) == 2


def test_workloads_that_look_alike_share_a_program() -> None:
    rule = ruled([({"n": 8, "kind": 1}, "a"), ({"n": 8, "kind": 2}, "b"), ({"n": 90, "kind": 1}, "b")], ["n"])
    assert {pick(rule, {"n": n}) for n in (8, 90)} <= {"a", "b"}


@given(
    st.lists(
        st.tuples(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from("abc")),
        min_size=1, max_size=7, unique_by=lambda p: p[:2],
    ),
    st.integers(1, 10**6),
)  # fmt: skip
def test_it_serves_what_was_measured_and_answers_for_everything_else(
    found: list[tuple[int, int, str]], size: int
) -> None:
    points = [({"n": n, "m": m}, program) for n, m, program in found]
    rule = ruled(points, ["n", "m"])
    assert len(list(leaves(rule))) <= MOST_LEAVES
    if len(points) <= MOST_LEAVES:
        assert all(pick(rule, axes) == program for axes, program in points)
    assert pick(rule, {"n": size, "m": size}) in "abc"
