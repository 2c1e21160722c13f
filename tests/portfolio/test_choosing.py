"""Which program for which workload: only what is beyond the noise moves one away from the run's best."""

from __future__ import annotations

import pytest

from ksearch.portfolio.choosing import NothingToCombine, PortfolioError, choose, comparable, gain, mean_gain
from ksearch.types import Evaluation
from tests.portfolio.history import measured, pid

NAMES = ("small", "middle", "large")


def history(**speedups: tuple[float, float, float]) -> dict[str, Evaluation]:
    return {pid(name): measured(pid(name), dict(zip(NAMES, values, strict=True))) for name, values in speedups.items()}


def assigned(found: dict[str, Evaluation], best: str, at_most: int = 3, mean: str = "geometric") -> list[str]:
    names = {pid(name): name for name in "abcdef"}
    choice = choose(found, pid(best), NAMES, mean, at_most)
    return [names[choice.assigned[name]] for name in NAMES]


def test_each_workload_goes_to_the_program_that_is_surely_faster_there() -> None:
    assert assigned(history(a=(2, 2, 2), b=(3, 1, 1), c=(1, 1, 4)), "a") == ["b", "a", "c"]


def test_a_difference_within_the_noise_moves_nothing() -> None:
    with pytest.raises(NothingToCombine, match="none surely beats it"):
        assigned(history(a=(2, 2, 2), b=(2.03, 1, 1)), "a")


def test_one_program_best_everywhere_needs_no_portfolio() -> None:
    with pytest.raises(NothingToCombine, match="best everywhere"):
        assigned(history(a=(3, 3, 3), b=(2, 2, 2), c=(1, 2, 3)), "a")
    with pytest.raises(NothingToCombine, match="also against"):
        assigned(history(a=(2, 2, 2), b=(3, 3, 3)), "a")


def test_the_only_program_has_nothing_to_be_combined_with() -> None:
    with pytest.raises(NothingToCombine, match="only program"):
        assigned(history(a=(2, 2, 2)), "a")


def test_the_limit_keeps_the_programs_that_help_most() -> None:
    found = history(a=(2, 2, 2), b=(3, 1, 1), c=(1, 1, 8), d=(1, 2.2, 1))
    assert assigned(found, "a", at_most=2) == ["a", "a", "c"]
    assert assigned(found, "a", at_most=4) == ["b", "d", "c"]


def test_the_runs_best_may_be_no_part_of_it() -> None:
    assert assigned(history(a=(2, 2, 2), b=(3, 3, 1), c=(1, 1, 4)), "a", at_most=2) == ["b", "b", "c"]


def test_a_pair_decides_before_the_baseline_does_in_either_direction() -> None:
    flat = dict.fromkeys(NAMES, 2.0)
    a = measured(pid("a"), flat)
    b = measured(pid("b"), flat, {pid("a"): {"small": 1.5, "middle": 1.0, "large": 0.5}})
    assert [gain(b, a, name).value for name in NAMES] == [1.5, 1.0, 0.5]
    assert gain(a, b, "large").value == pytest.approx(2)
    assert gain(a, b, "large").low < 2 < gain(a, b, "large").high
    assert assigned({pid("a"): a, pid("b"): b}, "a") == ["b", "a", "a"]


def test_without_a_pair_a_gain_over_a_slower_baseline_is_none() -> None:
    """The other session's baseline was half as fast: twice the speedup, and the same time."""
    a = measured(pid("a"), dict.fromkeys(NAMES, 2.0))
    b = measured(pid("b"), dict.fromkeys(NAMES, 4.0), ms=dict.fromkeys(NAMES, 0.5))
    assert not gain(b, a, "small").faster


def test_times_of_another_device_or_of_other_workloads_are_left_out() -> None:
    flat = dict.fromkeys(NAMES, 2.0)
    found = {
        pid("a"): measured(pid("a"), flat),
        pid("b"): measured(pid("b"), flat, device="another"),
        pid("c"): measured(pid("c"), {"small": 9.0}),
    }
    assert set(comparable(found, pid("a"), NAMES)) == {pid("a")}
    with pytest.raises(PortfolioError, match="not timed on each of small, middle, huge"):
        comparable(found, pid("a"), ("small", "middle", "huge"))


def test_the_tasks_own_mean_weighs_the_workloads() -> None:
    best = measured(pid("a"), {"small": 1.0, "middle": 1.0, "large": 8.0})
    gains = {"small": 2.0, "middle": 1.0, "large": 1.0}
    assert mean_gain(best, gains, "geometric") == pytest.approx(2 ** (1 / 3))
    assert mean_gain(best, gains, "arithmetic") == pytest.approx(11 / 10)
