"""How models are asked in a whole run: each at its address, with what it takes, and with what the log says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import takewhile

import pytest

from ksearch import events as ev
from ksearch.run import Run
from ksearch.service.beginning import log_of
from ksearch.testing.model_server import Asked, ModelServer, Scripted, chat, status
from tests.cli.shell import Shell
from tests.hostile.conftest import PLAN, SOURCE, Clock, good, is_plan, plain

pytestmark = pytest.mark.timeout(30)
Opened = Callable[[str], Run]
RUN = ("run", "--task", "softmax", "--name", "a", "--evaluations", "2")


def test_planner_and_writer_in_two_places_each_with_its_own_key(shell: Shell, opened: Opened) -> None:
    with ModelServer([Clock(good)]) as one, ModelServer([Clock(good)]) as two:
        models = ("--planner-model", f"openai:p@{one.url}#P_KEY", "--writer-model", f"openai:w@{two.url}")
        shell(*RUN, *models, P_KEY="secret-of-the-planner", OPENAI_API_KEY="secret-of-the-vendor")
    assert opened("a").state.evaluated == 2
    assert [asked.body["model"] for asked in one.requests] == ["p"]
    assert [asked.body["model"] for asked in two.requests] == ["w", "w"]
    assert one.requests[0].headers["authorization"] == "Bearer secret-of-the-planner"
    assert all("authorization" not in asked.headers for asked in two.requests)


def test_an_outage_of_one_place_is_not_the_others(shell: Shell, opened: Opened) -> None:
    """The writer's server is down for two calls; the planner's is on the same protocol and is not blamed."""
    down = Clock(lambda asked, n: status(503) if n <= 2 else good(asked, n))
    with ModelServer([Clock(good)]) as one, ModelServer([down]) as two:
        models = ("--planner-model", f"openai:p@{one.url}", "--writer-model", f"openai:w@{two.url}")
        shell(*RUN, *models, KSEARCH_MODEL_TRIES="1", KSEARCH_OUTAGE_FAILURES="2")
        pause = next(e for e in log_of(opened("a")) if isinstance(e, ev.Paused))
    assert two.url in pause.reason
    assert opened("a").state.evaluated == 2


def odd(asked: Asked, number: int) -> Scripted:
    """A server that takes no schema and counts no tokens."""
    if "response_format" in asked.body:
        return status(400, "response_format is not supported")
    return chat(PLAN if is_plan(asked) else f"```cpp\n{SOURCE.format(number)}```\n", usage={})


def test_what_a_server_does_not_do_is_in_the_log_and_told_once(shell: Shell, opened: Opened) -> None:
    with ModelServer([Clock(odd)]) as server:
        out = plain(shell(*RUN, "--model", f"openai:m@{server.url}"))
    run = opened("a")
    planned, *written = [e for e in log_of(run) if isinstance(e, ev.Received)]
    assert any("takes no JSON schema" in note for note in planned.notes)
    assert all(e.notes == ("tokens are not reported, and so estimated from the texts",) for e in written)
    assert out.count("takes no JSON schema") == 1
    assert out.count("tokens are not reported") == 1
    assert json.loads(planned.sent) == {"model": "m", "max_tokens": 16_000}
    told = plain(shell("show", "a", "n1"))
    assert told.count('asked with {"model": "m", "max_tokens": 16000}') == 1
    assert told.count("note: tokens are not reported") == len(written)


def test_a_run_that_paused_over_the_window_goes_on_with_shorter_calls(shell: Shell, opened: Opened) -> None:
    def small(asked: Asked, number: int) -> Scripted:
        fits = asked.body["max_tokens"] <= 2000
        return good(asked, number) if fits else status(400, "This model's maximum context length is 8192 tokens")

    with ModelServer([Clock(small)]) as server:
        _, err = shell.both(*RUN, "--model", f"openai:m@{server.url}", code=1)
        assert "resume a" in plain(err)
        assert "--prompt-tokens" in (opened("a").state.paused or "")
        shell("resume", "a", "--prompt-tokens", "5000", "--reply-tokens", "2000")
        assert server.requests[-1].body["max_tokens"] == 2000
        longest = max(len(json.dumps(asked.body["messages"])) for asked in server.requests[1:])
        assert longest < 5000 * 3 * 1.3
    assert opened("a").state.evaluated == 2


def test_a_window_that_is_known_to_be_too_small_is_said_before_anything_is_begun(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ksearch.models.provider import ProviderModel

    class Small(ProviderModel):
        def __init__(self, endpoint: object, *_: object) -> None:
            super().__init__(endpoint, context_tokens=8192)  # type: ignore[arg-type]

    monkeypatch.setattr("ksearch.models.provider.ProviderModel", Small)
    err = plain(shell.fails(*RUN, "--model", "openai:m@http://127.0.0.1:9/v1", code=2))
    assert "has a context of 8,192 tokens" in err
    assert "may come to 40,000: lower --prompt-tokens or --reply-tokens" in err
    assert shell.json("runs") in ([], {"runs": []})


def test_prompts_of_a_role_begin_alike_so_that_a_provider_can_cache_them(shell: Shell) -> None:
    with ModelServer([Clock(good)]) as server:
        more = ("--stagnation", "2", "--model", f"openai:m@{server.url}")
        shell("run", "--task", "softmax", "--name", "a", "--evaluations", "8", *more)
    for role in (True, False):
        asked = [request.body["messages"] for request in server.requests if is_plan(request) == role]
        texts = ["\n".join(message["content"] for message in messages) for messages in asked]
        assert len(texts) > 1
        alike = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))
        assert alike > 0.5 * max(map(len, texts))


def test_a_planner_that_thinks_beyond_its_limit_goes_on_with_a_larger_one(shell: Shell, opened: Opened) -> None:
    def thinks(asked: Asked, number: int) -> Scripted:
        return good(asked, number) if asked.body["max_tokens"] > 16_000 else chat("", finish="length")

    with ModelServer([Clock(thinks)]) as server:
        shell(*RUN, "--model", f"openai:m@{server.url}", code=1)
        run = opened("a")
        assert (run.state.ended or "").startswith("planner_failed")
        paid = run.state.spent.tokens
        assert paid == 120 * len(server.requests), "what was thought is paid for"
        shell("resume", "a", "--reply-tokens", "32000")
    run = opened("a")
    assert (run.state.ended, run.state.evaluated) == ("budget: evaluations", 2)
    assert run.state.spent.tokens == paid + 3 * 120
