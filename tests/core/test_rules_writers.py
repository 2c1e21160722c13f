"""Several writers: in turn, or as a bandit on gain per cost; each attempt's writer is in the log."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from ksearch import events as ev
from ksearch.fold import fold
from ksearch.protocol import Budget, Cost, Kind, Lost, Refusal
from ksearch.state import State, Tally, evolve
from ksearch.types import Verdict
from ksearch.writers import TRIES, choose_writer, costs
from tests.core.story import Story, add, passed, pid, planned, program

TWO = ("ann", "bob")


def asked(story: Story) -> list[str]:
    return [e.request.writer for e in story.log if isinstance(e, ev.Asked) and e.request.kind is Kind.WRITE]


def attempts(story: Story, count: int, gain: dict[str, float], price: dict[str, float | None]) -> Counter[str]:
    """So many attempts, each with the chance of a gain of 10% and at the price of whoever writes; who wrote them."""
    chance, best, wrote = random.Random(7), 1.0, Counter[str]()
    for number in range(count):
        request = story.hand_out(Kind.WRITE)
        wrote[request.writer] += 1
        story.pays(request, 1000, price[request.writer])
        story.tell(request, program(f"p{number}"))
        measure = story.hand_out(Kind.EVALUATE)
        better = chance.random() < gain[request.writer]
        best *= 1.1 if better else 1.0
        against = {
            text: 1.1 if better else 0.9 for text in (f"p{n}" for n in range(number)) if pid(text) in measure.against
        }
        story.tell(measure, passed(f"p{number}", best if better else 0.9 * best, **against))
    return wrote


def searching(**rules: object) -> Story:
    """One endless action with two writers."""
    return planned(add("a"), **{"budget": Budget(500), "stagnation": 400, "writers": TWO, **rules})


# --- rules --------------------------------------------------------------------------------------------------------


def test_writers_are_asked_in_turn() -> None:
    story = searching(writers=("ann", "bob", "eve"))
    story.fails(7)
    assert asked(story) == ["ann", "bob", "eve", "ann", "bob", "eve", "ann"]


def test_programs_of_one_round_are_shared_out_in_turn() -> None:
    story = searching(width=2)
    assert [story.hand_out(Kind.WRITE).writer for _ in range(2)] == ["ann", "bob"]


def test_the_writer_of_an_attempt_is_in_the_log_and_a_replay_does_not_choose_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = searching(bandit=True)
    attempts(story, 12, {"ann": 0.5, "bob": 0.5}, {"ann": 0.1, "bob": 0.1})
    monkeypatch.setattr("ksearch.search.choose_writer", lambda _: pytest.fail("a replay chooses nothing"))
    again = fold(story.log)
    assert again == story.state
    assert [a.writer for a in again.cycles["n1"].attempts] == asked(story)


def test_work_that_was_lost_is_asked_again_of_the_same_writer() -> None:
    story = searching()
    first = story.hand_out(Kind.WRITE)
    story.tell(first, Lost("the line was cut"))
    assert story.hand_out(Kind.WRITE) == first


def test_a_single_writer_is_not_named() -> None:
    story = planned(add("a"))
    story.fails(2)
    assert asked(story) == ["", ""]
    assert not story.state.writers


def test_the_bandit_first_gives_each_writer_two_attempts() -> None:
    story = searching(bandit=True)
    attempts(story, 2 * TRIES, {"ann": 1.0, "bob": 0.0}, {"ann": 0.0, "bob": 5.0})
    assert asked(story) == ["ann", "bob"] * TRIES


def test_the_bandit_prefers_whoever_brings_more_for_the_same_money() -> None:
    wrote = attempts(searching(bandit=True), 60, {"ann": 0.1, "bob": 0.6}, {"ann": 0.1, "bob": 0.1})
    assert wrote["bob"] > 2 * wrote["ann"]
    assert wrote["ann"] > TRIES


def test_the_bandit_prefers_whoever_brings_the_same_for_less_money() -> None:
    wrote = attempts(searching(bandit=True), 60, {"ann": 0.4, "bob": 0.4}, {"ann": 0.5, "bob": 0.02})
    assert wrote["bob"] > 2 * wrote["ann"]


def test_a_writer_without_price_is_no_more_than_twice_as_good_a_buy_as_the_average() -> None:
    tallies = {"ann": Tally(asked=10, usd=0.0), "bob": Tally(asked=10, usd=3.0)}
    assert costs(tallies) == {"ann": 1.0, "bob": 3.0}
    assert costs({"ann": Tally(asked=3), "bob": Tally(asked=4)}) == {"ann": 1.0, "bob": 1.0}


def test_writers_are_compared_by_tokens_where_a_price_is_unknown() -> None:
    tallies = {"ann": Tally(asked=10, tokens=1000, unpriced=10), "bob": Tally(asked=10, tokens=3000, usd=2.0)}
    assert costs(tallies) == {"ann": 1.5, "bob": 2.5}


def test_a_gain_is_what_an_attempt_surely_adds_to_its_action() -> None:
    story = searching(writers=("ann", "bob", "eve", "joe"))
    story.attempt("p0", 2.0)
    story.attempt("p1", 3.0, p0=1.5)
    story.attempt("p2", None)
    story.attempt("p3", 2.9, p1=0.97)
    gains = {name: (t.judged, t.gains, round(t.log_gain, 3)) for name, t in story.state.writers.items()}
    assert gains == {"ann": (1, 1, 0.693), "bob": (1, 1, 0.405), "eve": (1, 0, 0.0), "joe": (1, 0, 0.0)}


def test_a_first_program_that_is_behind_its_parent_is_no_gain() -> None:
    story = searching()
    story.attempt("p0", 0.5)
    story.attempt("p1", 0.8, p0=1.6)
    assert [t.gains for t in story.state.writers.values()] == [0, 0]


def test_a_reply_without_a_program_is_an_attempt_of_its_writer_that_brought_nothing() -> None:
    story = searching()
    request = story.hand_out(Kind.WRITE)
    story.pays(request, 100, 0.10)
    story.tell(request, Refusal(Verdict.REFUSED, "no"))
    assert story.state.writers["ann"] == Tally(asked=1, judged=1, tokens=100, usd=0.10)


def test_a_reservation_without_a_reply_is_on_its_writers_account_until_the_reply_comes() -> None:
    story = searching(reserve=Cost(700, 0.70))
    request = story.hand_out(Kind.WRITE)
    story.tell(request, Lost("no whole reply in time"))
    assert story.state.writers["ann"] == Tally(asked=1, tokens=700, usd=0.70)
    story.pays(request, 100, 0.10)
    assert story.state.writers["ann"] == Tally(asked=1, tokens=100, usd=0.10)


# --- the choice as a function -------------------------------------------------------------------------------------


def test_the_same_state_gives_the_same_writer_and_requests_differ() -> None:
    story = searching(bandit=True)
    even = {name: Tally(asked=20, judged=20, gains=5, log_gain=0.5, usd=2.0) for name in TWO}
    states: list[State] = [evolve(story.state, writers=even, asked=n) for n in range(100, 140)]
    chosen = [choose_writer(state) for state in states]
    assert chosen == [choose_writer(state) for state in states]
    assert set(chosen) == set(TWO)
    worse = {**even, "bob": replace(even["bob"], gains=0, log_gain=0.0)}
    assert Counter(choose_writer(evolve(state, writers=worse)) for state in states)["bob"] < 5
