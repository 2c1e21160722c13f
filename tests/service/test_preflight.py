"""What is said, and set aside, before anything is spent."""

from __future__ import annotations

from typing import Any

import pytest

from ksearch.config import load
from ksearch.models import Price
from ksearch.models.prices import price_of_call
from ksearch.service.beginning import begin
from ksearch.service.preflight import allows_nothing, preflight, with_reserve
from ksearch.store import open_store

PRICED = {"model": "openai:gpt-5", "prices": {"openai:gpt-5": [2.0, 10.0]}}  # whatever the list says next year


def lines(**flags: Any) -> list[str]:
    return preflight(with_reserve(load(flags, {})).config).splitlines()


def test_a_search_by_a_priced_model_is_estimated_in_tokens_and_money() -> None:
    budget, estimate = lines(evaluations=28, stagnation=7, **PRICED)
    assert budget == "budget: 28 evaluations, at most 84 attempts"
    usd = (28 + 5) * (6_000 * 2 + 4_000 * 10) / 1e6
    assert f"28 programs and about 5 plans: about 0.33 M tokens and {usd:.2g} USD, at 6,000 tokens in" in estimate
    assert "unknown" not in estimate


def test_an_unknown_price_is_named_and_never_counted_as_nothing() -> None:
    _, estimate = lines(planner_model="openai:gpt-5", writers=["command:x", "openai:gpt-5"], prices=PRICED["prices"])
    assert estimate.endswith("; the price of command:x is unknown")
    _, estimate = lines(model="command:x")
    assert "USD" not in estimate


def test_nothing_is_estimated_where_agents_answer() -> None:
    assert lines(evaluations=3) == ["budget: 3 evaluations, at most 9 attempts"]


def test_a_limit_in_money_sets_the_worst_case_of_the_dearest_model_aside(tmp_path: Any) -> None:
    prices = {"openai:gpt-5": [2.0, 10.0], "openai:mini": [0.1, 1.0]}
    loaded = load({"model": "openai:mini", "writer_model": "openai:gpt-5", "prices": prices, "usd": 5.0}, {})
    worst = (24_000 * 2 + 16_000 * 10) / 1e6
    found = with_reserve(loaded)
    assert found.config.reserve.usd == pytest.approx(worst)
    assert found.origins["reserve_usd"] == "worst case of openai:gpt-5 by its price"
    assert with_reserve(found) == found
    assert f"5 USD, enough for at least {int(5 / worst)} model calls" in preflight(found.config)
    with open_store(tmp_path / "runs.db") as store:
        assert begin(store, "a", loaded).state.config.reserve.usd == pytest.approx(worst)
    assert with_reserve(load({**PRICED, "usd": 5.0, "reserve_tokens": 1}, {})).config.reserve.usd == pytest.approx(
        worst
    )


def test_what_the_user_sets_aside_stays_and_without_a_limit_nothing_is(tmp_path: Any) -> None:
    file = tmp_path / "ksearch.toml"
    file.write_text("reserve_usd = 0.5\n")
    assert with_reserve(load({**PRICED, "usd": 5.0}, {}, file)).config.reserve.usd == 0.5
    assert with_reserve(load(PRICED, {})).config.reserve.usd == 0.0


def test_a_limit_that_holds_nothing_back_is_said() -> None:
    assert any("does not hold them back" in line for line in lines(model="command:x", usd=5.0))
    assert not any("does not hold" in line for line in lines(**PRICED, usd=5.0))


def test_a_limit_below_one_call_is_refused_with_the_cure() -> None:
    why = allows_nothing(with_reserve(load({**PRICED, "usd": 0.1}, {})).config)
    assert why
    assert "0.1 USD does not allow one model call: 0.21 are set aside for each, the worst case. Raise --usd" in why


def test_the_price_of_a_call_comes_from_the_list_for_the_providers_own_host_only() -> None:
    listed = price_of_call("openai:gpt-5", 1_000_000, 0)
    assert listed
    assert listed > 0
    assert price_of_call("openai-chat:gpt-5", 1_000_000, 0) == listed
    assert price_of_call("openai:gpt-5", 1_000_000, 0, base_url="https://api.openai.com/v1/") == listed
    assert price_of_call("openai:gpt-5", 1_000_000, 0, base_url="http://localhost:8000/v1") is None
    assert price_of_call("openai:no-such-model", 1, 1) is None
    assert price_of_call("command:claude", 1, 1) is None
    assert price_of_call("command:claude", 10, 20, Price(1.0, 2.0)) == 50 / 1e6
