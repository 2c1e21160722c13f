"""Who of many tasks gets the next part of a shared budget."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ksearch.drivers import drive
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.service.allotting import Rules, Standing, Step, Unit, next_grant, rate, steps_of, weights
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk


def standing(task: str, speeds: list[float], *, over: str = "", usd: float = 1) -> Standing:
    """A task whose best was so fast after each evaluation; each cost `usd`."""
    steps = [Step(n, 100 * n, usd * n, math.log(s)) for n, s in enumerate([1.0, *speeds])]
    return Standing(task, len(speeds), over, tuple(steps))


def test_each_task_gets_its_first_part_in_the_order_of_the_list() -> None:
    rules = Rules(30, least=4)
    grant = next_grant([standing("a", [2.0] * 4), Standing("b"), Standing("c")], rules)
    assert grant
    assert (grant.task, grant.evaluations) == ("b", 4)


def test_a_part_that_was_begun_is_finished_first() -> None:
    first = next_grant([standing("a", [2.0] * 4), standing("b", [1, 1]), Standing("c")], Rules(30, least=4))
    assert first
    assert (first.task, first.evaluations) == ("b", 2)
    later = next_grant([standing("a", [1.0, 1, 1, 1, 4]), standing("b", [1.0] * 6)], Rules(30, least=4, share=5))
    assert later
    assert (later.task, later.evaluations) == ("a", 4)


def test_then_a_task_that_gains_gets_more_than_one_that_does_not() -> None:
    early = standing("early", [3.0] * 24)  # gained much, but long ago
    late = standing("late", [1.0] * 20 + [1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
    grant = next_grant([early, late], Rules(90, least=4, share=2))
    assert grant
    assert (grant.task, grant.evaluations) == ("late", 2)
    assert "weight" in grant.why


def test_a_task_that_gains_as_the_average_gets_twice_the_part_of_one_that_gains_nothing() -> None:
    same = [1.1, 1.2, 1.3, 1.4]
    rules = Rules(90, least=4, share=4)
    assert weights([standing("a", same), standing("b", same)], rules) == [2, 2]
    assert weights([standing("a", same), standing("b", [1.0] * 4)], rules) == [3, 1]
    assert weights([standing("a", [1.0] * 4), standing("b", [1.0] * 4)], rules) == [1, 1]
    assert weights([standing("free", same, usd=0), standing("b", same)], Rules(90, 4, 4, Unit.USD)) == [3, 3]


def test_none_starves() -> None:
    gains, flat = standing("gains", [1.1**n for n in range(40)]), standing("flat", [1.0] * 10)
    grant = next_grant([gains, flat], Rules(99, least=5, share=5))
    assert grant
    assert grant.task == "flat"


def test_gain_is_set_against_what_it_cost() -> None:
    dear, cheap = standing("dear", [1.0, 1.5], usd=4), standing("cheap", [1.0, 1.4], usd=0.1)
    by_usd = weights([dear, cheap], Rules(20, 2, 2, Unit.USD))
    by_count = weights([dear, cheap], Rules(20, 2, 2, Unit.EVALUATIONS))
    assert by_usd[0] < by_usd[1]
    assert by_count[0] > by_count[1]


def test_tasks_that_gain_nothing_take_turns() -> None:
    standings = [standing("a", [1.0] * 6), standing("b", [1.0] * 4), standing("c", [1.0] * 4)]
    grant = next_grant(standings, Rules(30, least=4, share=2))
    assert grant
    assert grant.task == "b"


def test_what_a_task_that_is_over_did_not_use_is_for_the_others() -> None:
    over = standing("a", [2.0] * 3, over="exhausted")
    grant = next_grant([over, standing("b", [1.0] * 4)], Rules(9, least=4, share=9))
    assert grant
    assert (grant.task, grant.evaluations) == ("b", 2)
    assert next_grant([over], Rules(90)) is None


@given(st.lists(st.lists(st.floats(1, 4), max_size=12), min_size=1, max_size=6), st.integers(1, 60), st.integers(1, 9))
def test_the_budget_is_given_out_to_the_last_evaluation_and_never_more(
    speeds: list[list[float]], total: int, least: int
) -> None:
    rules, made = Rules(total, least, 3), {str(n): 0 for n in range(len(speeds))}

    def seen(task: str) -> Standing:
        curve = (speeds[int(task)] or [1.0]) * 60
        return standing(task, curve[: made[task]])

    while grant := next_grant([seen(task) for task in made], rules):
        assert grant.evaluations > 0
        made[grant.task] += grant.evaluations
    assert sum(made.values()) == total
    if total >= least * len(speeds):
        assert min(made.values()) >= least


def test_steps_tell_cost_and_best_after_each_evaluation_of_a_log() -> None:
    run = Run.create(open_store(":memory:"), "a", SearchConfig(Budget(12), stagnation=3))
    drive(run, fake_desk(3))
    steps = steps_of(run.log())
    assert [s.evaluations for s in steps] == list(range(13))
    assert [s.usd for s in steps] == sorted(s.usd for s in steps)
    best = run.state.evaluations[run.state.best_id or ""].speedup
    assert best
    assert steps[-1].log_speed == max(0.0, math.log(best.value))
    assert rate(Standing("a", 12, "", steps), Rules(99, share=12)) > 0
