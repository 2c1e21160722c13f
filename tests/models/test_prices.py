"""What a call may cost beforehand, and what its reply is said to have cost, come from one list."""

from __future__ import annotations

import pytest
from genai_prices import data_snapshot
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from ksearch.models.prices import _LISTED, price_of_call
from ksearch.models.provider import _list_price
from ksearch.models.providers import PROVIDERS

LISTED = {provider.id: provider for provider in data_snapshot.get_snapshot().providers}


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "ollama"])
def test_no_reply_costs_more_than_was_to_be_expected_of_its_length(name: str) -> None:
    known = 0
    for model in LISTED[_LISTED.get(name, name)].models[:40]:
        usage = RequestUsage(input_tokens=6000, output_tokens=4000)
        vendor = _LISTED[name] if name == "openai-chat" else name  # as the library names who answered
        reply = ModelResponse(
            [TextPart("x")],
            usage=usage,
            model_name=model.id,
            provider_name=vendor,
            provider_url=PROVIDERS[name].base_url,
        )
        before, after = price_of_call(f"{name}:{model.id}", 6000, 4000), _list_price(reply)
        assert (before is None) == (after is None), model.id
        assert (after or 0) <= (before or 0) + 1e-12, model.id
        known += before is not None
    assert known


def test_what_runs_here_has_no_listed_price() -> None:
    assert price_of_call("ollama:qwen2.5-coder", 1, 1) is None
