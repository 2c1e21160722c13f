"""OpenAI's Responses API when it goes wrong: the same words come of it as of a chat completion."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from ksearch.errors import BadAnswer, ModelError, ModelUnavailable, RateLimited
from ksearch.models import Answer, Call, RetryPolicy, open_model
from ksearch.models.providers import PROVIDERS
from ksearch.protocol import Refusal
from ksearch.replies import parse_program
from ksearch.testing.model_server import ModelServer, Scripted, raw, responses
from ksearch.types import Verdict

SOUND = '```cpp\nextern "C" void run() {}\n```\n'
BODY: dict[str, Any] = json.loads(responses(SOUND).body)
MESSAGE: dict[str, Any] = BODY["output"][0]
CALL = {
    "type": "function_call",
    "id": "f",
    "call_id": "c",
    "name": "write",
    "arguments": "{}",
    "status": "completed",
}


def changed(**changes: object) -> Scripted:
    return raw(json.dumps({**BODY, **changes}).encode())


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(script: Scripted) -> Answer:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
        with ModelServer([script]) as server:
            monkeypatch.setitem(PROVIDERS, "openai", dataclasses.replace(PROVIDERS["openai"], base_url=server.url))
            model = open_model("openai:gpt-5", retries=RetryPolicy(1))
            return model.complete(Call("writer", "write it", timeout_s=20))

    return answer


@pytest.mark.parametrize(
    ("script", "verdict", "says"),
    [
        (changed(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "truncated", "output limit"),
        (changed(status="incomplete", incomplete_details={"reason": "content_filter"}), "refused", "declined"),
        (changed(status="incomplete"), "truncated", "reported an error"),
        (changed(status="in_progress"), "truncated", "reported an error"),
        (changed(status="cancelled"), "truncated", "reported an error"),
        (changed(output=[]), "truncated", "is empty"),
        (changed(output=[{"type": "reasoning", "id": "r", "summary": []}]), "truncated", "is empty"),
        (changed(output=[CALL]), "unparsable", "called a tool"),
        (
            changed(output=[{**MESSAGE, "content": [{"type": "refusal", "refusal": "I can't do that"}]}]),
            "refused",
            "I can't do that",
        ),
        (raw(json.dumps(BODY).replace("run()", "run(/*@*/)").encode().replace(b"@", b"\xff")), "unparsable", "UTF-8"),
    ],
    ids=["limit", "filter", "incomplete", "in progress", "cancelled", "empty", "reasoning", "tool", "refusal", "latin"],
)
def test_no_half_reply_becomes_a_program(ask: Any, script: Scripted, verdict: str, says: str) -> None:
    answer = ask(script)
    assert (answer.tokens_in, answer.tokens_out) == (1000, 200)
    reply = parse_program(answer.text, languages=["cpp"], entry_point="run", finish=answer.finish)
    assert isinstance(reply, Refusal)
    assert reply.verdict is Verdict(verdict)
    assert says in reply.reason


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (changed(status="failed", error={"code": "server_error", "message": "boom"}, output=[]), ModelUnavailable),
        (changed(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}, output=[]), RateLimited),
        (changed(output=None), BadAnswer),
        (raw(b'{"error": {"message": "busy", "code": 503}}'), ModelUnavailable),
    ],
    ids=["failed", "rate", "null", "inside"],
)
def test_what_is_no_reply_is_told_apart(ask: Any, script: Scripted, kind: type[ModelError]) -> None:
    with pytest.raises(kind):
        ask(script)


@pytest.mark.parametrize(
    "usage",
    [None, {**BODY["usage"], "input_tokens": -5}, {**BODY["usage"], "output_tokens": 10**18}],
    ids=["none", "negative", "absurd"],
)
def test_usage_that_cannot_be_gives_no_price(ask: Any, usage: object) -> None:
    answer = ask(changed(usage=usage))
    assert answer.text == SOUND
    assert answer.usd is None
    assert 0 < answer.cost(Call("writer", "write it")).tokens < 10_000
