"""What a run has cost adds up to what its books say, whatever happened to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch import events as ev
from ksearch.budget import tokens_committed, usd_committed
from ksearch.costs import NO_REPLY, Bill, costs
from ksearch.protocol import Budget, Cost, Kind, Lost, Usage
from tests.core.drive import Pool, config
from tests.core.story import Story, add, passed, planned, program

RESERVE = Cost(100, 0.25)


def money(bills: list[Bill]) -> float:
    return sum(bill.usd for bill in bills)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0.0, 0.3]), st.sampled_from([(), ("ann", "bob")]))
def test_every_breakdown_adds_up_to_what_is_spent_and_set_aside(
    seed: int, chaos: float, writers: tuple[str, ...]
) -> None:
    pool = Pool(seed, config(reserve=RESERVE, width=2, max_active=2, writers=writers, bandit=True), chaos=chaos)
    pool.run()
    told = costs(pool.log)
    assert told.total.tokens == tokens_committed(pool.state)
    assert told.total.usd == pytest.approx(usd_committed(pool.state))
    assert told.total.unpriced == pool.state.unpriced
    for bills in (told.roles, told.models):
        assert sum(bill.tokens for bill in bills.values()) == told.total.tokens
        assert money(list(bills.values())) == pytest.approx(told.total.usd)
    actions = [action.bill for action in told.actions.values()]
    wrote = told.roles.get("writer", Bill())
    assert sum(bill.tokens for bill in actions) == wrote.tokens
    assert sum(action.evaluations for action in told.actions.values()) == pool.state.evaluated
    assert set(told.writers) <= set(writers)
    assert not writers or sum(bill.tokens for bill in told.writers.values()) == wrote.tokens


def written(story: Story, text: str, cost: Cost, usage: Usage | None, model: str, speedup: float) -> None:
    request = story.hand_out(Kind.WRITE)
    at, usd = story.now, cost
    story.record([ev.Received(at=at, request_id=request.id, raw="00", cost=usd, usage=usage, model=model)])
    story.tell(request, program(text))
    story.tell(story.hand_out(Kind.EVALUATE), passed(text, speedup))


def test_the_cost_of_a_doubling_is_money_over_the_logarithm_of_the_gain() -> None:
    story = planned(add("a"), budget=Budget(1))
    written(story, "p", Cost(1000, 0.60), Usage(900, 100, 450), "gpt", 4.0)
    told = costs(story.log)
    assert told.per_doubling == pytest.approx(0.30)
    assert told.actions["n1"].per_doubling == pytest.approx(0.30)
    assert told.models["gpt"].per_doubling() == pytest.approx(0.30)
    assert (told.models["gpt"].judged, told.models["gpt"].gains) == (1, 1)
    assert math.exp(told.models["gpt"].log_gain) == pytest.approx(4.0)


def test_the_cached_share_counts_only_replies_that_report_it() -> None:
    story = planned(add("a"), budget=Budget(9), stagnation=9)
    written(story, "p", Cost(1000, 0.1), Usage(800, 200, 600), "gpt", 2.0)
    written(story, "q", Cost(5000, 0.1), Usage(4000, 1000, None), "gpt", 1.0)
    written(story, "r", Cost(1000, 0.1), Usage(800, 200, 200), "gpt", 1.0)
    told = costs(story.log)
    assert told.total.cached_share == 0.5
    assert (told.total.reporting, told.total.tokens_in) == (2, 5600)
    assert (story.state.prompt_tokens, story.state.cached_tokens) == (1600, 800)


def test_without_any_price_gains_are_told_in_tokens() -> None:
    story = planned(add("a"), budget=Budget(1))
    written(story, "p", Cost(1000, None), None, "local", 2.0)
    told = costs(story.log)
    assert not told.models["local"].priced
    assert told.models["local"].per_doubling() == pytest.approx(1000)
    assert told.total.cached_share is None


def test_a_call_without_a_reply_is_told_and_paid_for() -> None:
    story = planned(add("a"), reserve=RESERVE)
    story.tell(story.hand_out(Kind.WRITE), Lost("no whole reply in time"))
    story.tell(story.hand_out(Kind.WRITE), Lost("connection refused", billed=False))
    told = costs(story.log)
    lost = told.models[NO_REPLY]
    assert (lost.unanswered, lost.tokens, lost.usd) == (2, 200, 0.5)  # the plan's, which nobody paid for, and this one
    assert told.actions["n1"].bill.unanswered == 1
