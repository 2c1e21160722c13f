"""Design 2.4 and 3: what may be spent, what is set aside before it is spent, and how a run ends."""

from __future__ import annotations

import pytest

from ksearch import events as ev
from ksearch.budget import evaluations_committed, tokens_committed, usd_committed
from ksearch.protocol import Budget, Cost, Done, Kind, Lost, Plan, Refusal, Wait
from ksearch.types import Verdict
from tests.core.story import ANN, BOB, SOLVED, add, kinds, passed, pid, planned, program


def test_a_program_that_is_being_written_holds_an_evaluation() -> None:
    story = planned(add("a"), add("b"), max_active=2, budget=Budget(1))
    story.hand_out(Kind.WRITE)
    assert evaluations_committed(story.state) == 1
    assert story.asks() == Wait("work is out", until=100)


def test_a_program_that_waits_to_be_measured_holds_an_evaluation() -> None:
    story = planned(add("a"), add("b"), max_active=2, budget=Budget(1))
    story.write("a")
    assert evaluations_committed(story.state) == 1
    assert story.asks(Kind.WRITE) == Wait("evaluate is wanted", until=None)


def test_a_reply_without_a_program_gives_its_evaluation_back() -> None:
    story = planned(add("a"), budget=Budget(1))
    story.fails(1)
    assert evaluations_committed(story.state) == 0
    story.hand_out(Kind.WRITE)


def test_what_is_written_is_measured_before_more_is_written() -> None:
    story = planned(add("a"), add("b"), max_active=2, width=2)
    story.write("a")
    assert story.hand_out().kind is Kind.EVALUATE


def test_the_last_evaluation_of_the_budget_is_made_and_no_more() -> None:
    story = planned(add("a"), budget=Budget(2), stagnation=5)
    story.attempt("a", None)
    story.attempt("b", None)
    assert story.asks() == Done("budget: evaluations")
    assert story.state.evaluated == 2


def test_attempts_have_a_limit_of_their_own() -> None:
    story = planned(add("a"), budget=Budget(10, attempts=2), stagnation=5)
    story.fails(2)
    assert story.asks() == Done("budget: attempts")


def test_the_limit_of_attempts_is_three_times_the_evaluations() -> None:
    assert Budget(7).max_attempts == 21
    story = planned(add("a"), budget=Budget(1), stagnation=9)
    story.fails(3)
    assert story.asks() == Done("budget: attempts")


def test_tokens_are_reserved_before_a_call_and_settled_by_its_reply() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=350))
    assert story.state.spent.tokens == 100  # the plan: its cost was never reported
    request = story.hand_out(Kind.WRITE)
    assert tokens_committed(story.state) == 200
    story.pays(request, tokens=30)
    assert (story.state.spent.tokens, tokens_committed(story.state)) == (130, 130)


def test_no_call_is_made_whose_reservation_does_not_fit() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=199))
    assert story.asks() == Done("budget: tokens")


def test_a_reservation_that_just_fits_is_good() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=200))
    story.hand_out(Kind.WRITE)


def test_a_call_of_another_worker_counts_while_it_is_out() -> None:
    story = planned(add("a"), add("b"), reserve=Cost(100), budget=Budget(tokens=299), max_active=2)
    story.hand_out(Kind.WRITE)
    assert story.asks() == Wait("work is out", until=100)


def test_money_is_reserved_and_settled_like_tokens() -> None:
    story = planned(add("a"), reserve=Cost(0, 0.25), budget=Budget(usd=0.75))
    request = story.hand_out(Kind.WRITE)
    assert usd_committed(story.state) == 0.5
    story.pays(request, usd=0.01)
    assert story.state.spent.usd == pytest.approx(0.26)
    assert usd_committed(story.state) == pytest.approx(0.26)


def test_money_ends_the_run_when_the_next_reservation_does_not_fit() -> None:
    story = planned(add("a"), reserve=Cost(0, 0.25), budget=Budget(usd=0.49))
    assert story.asks() == Done("budget: usd")


def test_money_that_is_spent_to_the_last_cent_ends_the_run_even_if_nothing_is_reserved() -> None:
    story = planned(add("a"), budget=Budget(usd=0.5))
    request = story.hand_out(Kind.WRITE)
    story.pays(request, usd=0.5)
    story.tell(request, Refusal(Verdict.REFUSED, "no"))
    assert story.asks() == Done("budget: usd")


def test_a_reservation_without_a_reply_counts_as_spent() -> None:
    story = planned(add("a"), reserve=Cost(100))
    request = story.hand_out(Kind.WRITE)
    story.tell(request, Lost("connection reset"))
    assert (story.state.spent.tokens, story.state.reserved) == (200, {})


def test_each_holder_of_a_request_reserves_anew() -> None:
    story = planned(add("a"), reserve=Cost(100))
    story.hand_out(Kind.WRITE)
    story.passes(101)
    story.hand_out(Kind.WRITE)
    assert (story.state.spent.tokens, tokens_committed(story.state)) == (200, 300)


def test_an_unknown_price_is_not_free_it_counts_as_what_was_reserved() -> None:
    story = planned(add("a"), reserve=Cost(0, 0.25))
    request = story.hand_out(Kind.WRITE)
    story.pays(request, usd=None)
    assert story.state.spent.usd == 0.5
    assert story.state.unpriced == 1


def test_a_reply_to_withdrawn_work_is_still_paid_for() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE, seconds=10)
    story.passes(11)
    story.command(ev.Stop())
    story.pays(request, tokens=50, usd=0.1)
    assert story.state.spent == Cost(50, 0.1)


def test_measuring_goes_on_when_no_money_is_left_for_calls() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=200))
    story.write("a")
    assert kinds(story.measure("a", 2)) == ["Evaluated", "Judged", "CycleClosed", "Ended"]
    assert story.asks() == Done("budget: tokens")
    assert story.node("n1").program_id == pid("a")


def test_lost_measuring_is_asked_again_when_no_money_is_left_for_calls() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=200))
    story.write("a")
    story.loses(1, Kind.EVALUATE)
    story.hand_out(Kind.EVALUATE)


def test_a_reply_that_is_stored_needs_no_money_to_be_read() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=200))
    request = story.hand_out(Kind.WRITE)
    story.pays(request, tokens=100)
    story.passes(1, dead=ANN)
    assert story.asks() == request


def test_working_time_is_counted_while_work_is_out() -> None:
    story = planned(add("a"), budget=Budget(seconds=60))
    story.hand_out(Kind.WRITE)
    story.passes(10)
    story.tell(story.last(ev.Asked).request, Lost("gone"))
    story.passes(1000)  # nobody works
    request = story.hand_out(Kind.WRITE)
    story.passes(5)
    story.tell(request, program("a"))
    assert story.state.worked_s == 15


def test_working_time_ends_the_run() -> None:
    story = planned(add("a"), budget=Budget(seconds=60))
    request = story.hand_out(Kind.WRITE, seconds=100)
    story.now += 60
    story.tell(request, Refusal(Verdict.REFUSED, "no"))
    assert story.asks() == Done("budget: seconds")


def test_the_working_time_of_a_dead_holder_counts_to_its_deadline_at_most() -> None:
    story = planned(add("a"), budget=Budget(seconds=60))
    story.hand_out(Kind.WRITE, seconds=30)
    story.passes(100_000, dead=ANN)
    assert story.state.worked_s == 30
    story.hand_out(Kind.WRITE)


def test_a_run_that_has_ended_stays_so() -> None:
    story = planned(add("a"), budget=Budget(1))
    story.attempt("a", 2)
    assert story.passes(1000) == []
    assert story.asks() == Done("budget: evaluations")


def test_a_reply_that_comes_after_the_end_and_was_cheap_does_not_reopen_the_run() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=250))
    request = story.hand_out(Kind.WRITE)
    story.passes(101)
    story.pays(request, tokens=1)
    assert tokens_committed(story.state) == 101
    assert story.asks() == Done("budget: tokens")


def test_the_end_of_the_budget_waits_for_what_is_out() -> None:
    story = planned(add("a"), add("b"), max_active=2, budget=Budget(2), stagnation=9)
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.tell(first, program("a"))
    assert kinds(story.measure("a", 2)) == ["Evaluated", "Judged"]
    story.tell(second, program("b"))
    assert kinds(story.measure("b", 2))[-3:] == ["Judged", "CycleClosed", "Ended"]
    assert {story.node("n1").status, story.node("n2").status} == {SOLVED}


def test_a_program_that_passed_out_of_order_is_not_lost_when_the_budget_ends() -> None:
    story = planned(add("a"), width=2, reserve=Cost(100), budget=Budget(tokens=300))
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.tell(second, program("b"))
    story.measure("b", 3)
    story.tell(first, Lost("gone"))
    assert story.last(ev.Ended).reason == "budget: tokens"
    assert (story.node("n1").status, story.node("n1").program_id) == (SOLVED, pid("b"))
    assert story.state.best_id == pid("b")


def test_a_cycle_is_not_closed_for_money_that_a_plan_only_holds_in_reserve() -> None:
    story = planned(add("a", 0.9), add("b", 0.8), max_active=2, reserve=Cost(100), budget=Budget(tokens=690))
    story.write("a")
    out = story.hand_out(Kind.EVALUATE)
    story.fails(3)
    plan = story.hand_out(Kind.PLAN)  # 600 spent or held; 501 once it has answered
    story.tell(out, passed("a", 2))
    assert story.count(ev.CycleClosed) == 1
    story.pays(plan, tokens=1)
    story.tell(plan, Plan())
    assert story.hand_out(Kind.WRITE).node_id == "n1"


def test_no_plan_is_bought_when_nothing_more_can_be_measured() -> None:
    story = planned(add("a", 0.9), add("b", 0.8), max_active=2, budget=Budget(2))
    story.write("a")
    out = story.hand_out(Kind.EVALUATE)
    story.fails(3)
    plan = story.hand_out(Kind.PLAN)
    story.tell(out, passed("a", 2))
    story.write("b")
    story.hand_out(Kind.EVALUATE)  # the last one
    story.tell(plan, Lost("gone"))
    assert story.asks() == Wait("work is out", until=100)


def test_a_reply_that_comes_after_all_takes_the_place_of_its_reservation() -> None:
    story = planned(add("a"), reserve=Cost(100, 0.25))
    request = story.hand_out(Kind.WRITE, ANN)
    story.passes(101)
    story.hand_out(Kind.WRITE, BOB)
    story.pays(request, tokens=80, usd=0.20)
    assert tokens_committed(story.state) == 100 + 100 + 80  # the plan, one call that is out, and this one
    story.pays(request, tokens=90, usd=0.25)
    assert story.state.spent.tokens == 100 + 80 + 90
    assert story.state.spent.usd == pytest.approx(0.25 + 0.20 + 0.25)


def test_a_call_that_surely_cost_nothing_gives_its_reservation_back() -> None:
    story = planned(add("a"), reserve=Cost(100))
    request = story.hand_out(Kind.WRITE)
    story.tell(request, Lost("connection refused", billed=False))
    assert (story.state.spent.tokens, tokens_committed(story.state)) == (100, 100)


def test_a_call_that_cost_nothing_holds_nothing_though_a_late_reply_took_its_reservation() -> None:
    story = planned(add("a"), reserve=Cost(100))
    request = story.hand_out(Kind.WRITE, ANN)
    story.passes(101)
    story.hand_out(Kind.WRITE, BOB)
    story.pays(request, tokens=80)  # ann's
    story.tell(request, Lost("connection refused", billed=False), BOB)
    assert tokens_committed(story.state) == story.state.spent.tokens == 100 + 80


def test_a_loss_that_only_a_person_can_mend_pauses_the_run_at_once() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE)
    assert kinds(story.tell(request, Lost("no quota left", again=False))) == ["WorkLost", "Paused"]
    assert story.asks() == Wait("paused: no quota left")
    story.command(ev.Resume())
    assert story.asks() == request
