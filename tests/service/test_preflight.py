"""What is said, and set aside, before anything is spent."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ksearch.config import load
from ksearch.models import Price
from ksearch.models.prices import price_of_call
from ksearch.service.beginning import begin
from ksearch.service.preflight import expected, objection, preflight, with_reserve
from ksearch.store import open_store

PRICED = {"model": "openai:gpt-5", "prices": {"openai:gpt-5": [2.0, 10.0]}}  # whatever the list says next year


def lines(**flags: Any) -> list[str]:
    return preflight(load(flags, {}).config).splitlines()


def objects(**flags: Any) -> str:
    return objection(load(flags, {}).config) or ""


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


def test_of_planner_and_writers_only_those_who_are_paid_are_estimated() -> None:
    _, estimate = lines(evaluations=14, planner_model="agent", writer_model="openai:gpt-5", prices=PRICED["prices"])
    assert f"about {14 * 10_000 / 1e6:.2g} M tokens and {14 * 0.052:.2g} USD" in estimate


def test_an_estimate_counts_no_more_programs_than_may_be_written() -> None:
    assert "estimate: 5 programs and about 1 plan:" in lines(evaluations=100, attempts=5, **PRICED)[1]


def test_large_and_small_sums_are_told_in_plain_figures() -> None:
    _, estimate = lines(evaluations=20_000, model="openai:gpt-5", prices={"openai:gpt-5": [20.0, 100.0]})
    assert "about 229 M tokens and 11,886 USD, at" in estimate
    assert "at 500 tokens in and 200 out" in lines(prompt_tokens=500, reply_tokens=200, **PRICED)[1]


def test_a_limit_that_is_likely_to_end_the_search_early_is_named() -> None:
    assert "reached before that" not in lines(evaluations=28, **PRICED, usd=5.0)[1]
    assert lines(evaluations=28, **PRICED, usd=1.0)[1].endswith("; the limit of 1 USD is reached before that")
    both = lines(evaluations=28, **PRICED, usd=1.0, tokens=200_000)[1]
    assert both.endswith("; the limit of 1 USD and of 200,000 tokens is reached before that")


def test_a_campaign_is_estimated_for_all_its_tasks() -> None:
    (estimate,) = expected(load({"evaluations": 28, **PRICED}, {}).config, 10)
    assert "28 programs and about 14 plans" in estimate


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


@pytest.mark.parametrize(
    "model", ["command:my-agent --fast", "command:codex", "openai:no-such-model", "openai:m@http://localhost:8000/v1"]
)
def test_a_limit_in_money_that_nothing_could_hold_is_refused_with_the_cure(model: str) -> None:
    why = objects(model=model, usd=5.0)
    assert f"cannot hold {model}: the price is unknown, which is not free" in why
    assert "`prices`" in why
    assert "`reserve_usd`" in why
    assert not objects(model=model, usd=5.0, prices={model: [0, 0]})
    assert not objects(model=model, usd=5.0, reserve_usd=0.1)
    assert not objects(model=model, tokens=1_000_000)


def test_beside_a_model_of_known_price_an_unknown_one_counts_as_much() -> None:
    flags: Any = {**PRICED, "writer_model": "command:codex", "usd": 5.0}
    assert not objects(**flags)
    assert with_reserve(load(flags, {})).config.reserve.usd == pytest.approx(0.208)


@pytest.mark.parametrize("model", ["command:claude --model opus", "command:pass=KEY opencode"])
def test_commands_that_report_their_price_afterwards_may_begin_and_that_is_said(model: str) -> None:
    assert not objects(model=model, usd=5.0)
    assert any("known only afterwards" in line for line in lines(model=model, usd=5.0))
    assert not any("afterwards" in line for line in lines(model=model, usd=5.0, reserve_usd=0.2))
    assert not any("afterwards" in line for line in lines(**PRICED, usd=5.0))


def test_a_package_that_is_missing_is_not_taken_for_an_unknown_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base install: the model's opening says what to install, and nothing before it says something else."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert not objects(model="openai:gpt-5", usd=5.0)
    assert "cannot hold command:codex" in objects(model="command:codex", usd=5.0)


def test_agents_need_no_price() -> None:
    assert not objects(usd=5.0)


def test_a_limit_below_one_call_is_refused_with_the_cure() -> None:
    why = objects(**PRICED, usd=0.1)
    assert "0.1 USD does not allow one model call: 0.21 are set aside for each, the worst case. Raise --usd" in why


def test_what_is_set_aside_is_never_less_than_the_worst_case() -> None:
    flags: Any = {"model": "openai:x", "prices": {"openai:x": [0.001, 0.0013]}, "usd": 1.0}
    config = load({**flags, "prompt_tokens": 7, "reply_tokens": 3}, {})
    assert (with_reserve(config).config.reserve.usd or 0) >= (7 * 0.001 + 3 * 0.0013) / 1e6


def test_the_price_of_a_call_comes_from_the_list_for_the_providers_own_host_only() -> None:
    listed = price_of_call("openai:gpt-5", 1_000_000, 0)
    assert listed
    assert listed > 0
    assert price_of_call("openai-chat:gpt-5", 1_000_000, 0) == listed
    assert price_of_call("openai:gpt-5", 1_000_000, 0, base_url="https://api.openai.com/v1/") == listed
    assert price_of_call("openai:gpt-5", 1_000_000, 0, base_url="http://localhost:8000/v1") is None
    assert price_of_call("openai:gpt-5@https://api.openai.com/v1", 1_000_000, 0) == listed
    assert price_of_call("openai:gpt-5@http://localhost:8000/v1", 1_000_000, 0) is None
    assert price_of_call("openai:no-such-model", 1, 1) is None
    assert price_of_call("command:claude", 1, 1) is None
    assert price_of_call("command:claude", 10, 20, Price(1.0, 2.0)) == 50 / 1e6
