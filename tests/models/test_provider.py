"""Models behind an API, over a real connection to a server that misbehaves as providers do."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from ksearch.errors import (
    BadAnswer,
    BadKey,
    BadModelRequest,
    ContextTooLong,
    ModelError,
    ModelSetupError,
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from ksearch.models import Answer, Call, Model, Price, RetryPolicy, open_model
from ksearch.models import exchange as exchanges
from ksearch.models.providers import PROVIDERS
from ksearch.protocol import Cost, Refusal
from ksearch.replies import parse_program, plan_schema
from ksearch.testing.model_server import (
    ModelServer,
    Scripted,
    chat,
    cut,
    drip,
    hang,
    raw,
    responses,
    status,
)
from ksearch.types import Verdict

QUICK = RetryPolicy(tries=3, first_wait_s=0.001)
CALL = Call("writer", "write it", stable="the task\n", system="you write kernels", timeout_s=20)
IMPATIENT = dataclasses.replace(CALL, timeout_s=0.4)


def open_at(server: ModelServer, spec: str = "openai:any", **kwargs: Any) -> Model:
    return open_model(spec, base_url=server.url, retries=QUICK, **kwargs)


def ask(*script: Scripted, call: Call = CALL, **kwargs: Any) -> Answer:
    with ModelServer(script) as server:
        return open_at(server, **kwargs).complete(call)


def failure(*script: Scripted, call: Call = CALL, asked: int = 1) -> ModelError:
    with ModelServer(script) as server:
        model = open_at(server)
        with pytest.raises(ModelError) as caught:
            model.complete(call)
    assert len(server.requests) == asked
    assert caught.value.tries == asked
    assert "any" in str(caught.value)
    return caught.value


class TestAnAnswer:
    def test_has_text_usage_and_what_was_sent(self) -> None:
        usage = {
            "prompt_tokens": 50,
            "completion_tokens": 30,
            "total_tokens": 80,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 10},
        }
        script = chat("hello", usage=usage)
        call = dataclasses.replace(CALL, max_tokens=99, temperature=0.25)
        answer = ask(script, call=call)
        assert (answer.text, answer.finish, answer.model) == ("hello", "stop", "fake-1")
        counts = (answer.tokens_in, answer.tokens_out, answer.tokens_cached, answer.tokens_reasoning)
        assert counts == (50, 30, 40, 10)
        assert answer.raw == script.body
        assert answer.sent == {"model": "any", "max_tokens": 99, "temperature": 0.25}
        assert answer.notes == ()
        assert answer.tries == 1
        assert answer.seconds > 0

    @pytest.mark.parametrize(("details", "cached"), [({}, None), ({"prompt_tokens_details": {"cached_tokens": 0}}, 0)])
    def test_tells_of_a_cache_only_if_the_server_does(self, details: dict[str, Any], cached: int | None) -> None:
        usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70, **details}
        assert ask(chat("a reply on the cache", usage=usage)).tokens_cached == cached

    def test_is_asked_with_the_stable_part_first(self) -> None:
        with ModelServer([chat()]) as server:
            open_at(server).complete(CALL)
        assert server.requests[0].body["messages"] == [
            {"role": "system", "content": "you write kernels"},
            {"role": "user", "content": "the task\nwrite it"},
        ]

    def test_of_a_model_without_a_known_price_costs_an_unknown_sum(self) -> None:
        answer = ask(chat(model="gpt-4o"), spec="openai:gpt-4o")  # the name says nothing about whose server it is
        assert answer.usd is None
        assert answer.cost(CALL) == Cost(120, None)

    def test_costs_what_the_user_says(self) -> None:
        assert ask(chat(), price=Price(1.0, 10.0)).usd == pytest.approx((100 + 200) / 1e6)
        assert ask(chat(), price=Price(0, 0)).usd == 0
        assert ask(chat(usage={}), price=Price(1, 1)).usd is None

    def test_without_usage_has_its_tokens_estimated_but_not_its_price(self) -> None:
        answer = ask(chat("x" * 300, usage={}))
        assert answer.tokens_in is answer.tokens_out is answer.usd is None
        assert answer.cost(CALL).tokens >= 100 + len(CALL.text) // 3
        assert answer.cost(CALL).usd is None

    def test_can_be_held_to_a_schema(self) -> None:
        with ModelServer([chat('{"edits": []}')]) as server:
            answer = open_at(server).complete(dataclasses.replace(CALL, json_schema=plan_schema()))
        form = server.requests[0].body["response_format"]
        assert form["json_schema"]["schema"]["required"] == ["edits"]
        assert answer.sent["response_format"] == {"type": "json_schema", "json_schema": "…"}

    def test_from_an_endpoint_without_schemas_says_so(self) -> None:
        call = dataclasses.replace(CALL, json_schema=plan_schema())
        answer = ask(status(400, "'response_format' of type 'json_schema' is not supported"), chat("hi"), call=call)
        assert answer.text == "hi"
        assert "no JSON schema" in answer.notes[0]
        assert "response_format" not in answer.sent

    def test_from_an_endpoint_that_refused_a_schema_once_is_not_asked_for_it_again(self) -> None:
        call = dataclasses.replace(CALL, json_schema=plan_schema())
        with ModelServer([status(400, "response_format is not supported"), chat("hi")]) as server:
            model = open_at(server)
            answers = [model.complete(call) for _ in range(3)]
        assert len(server.requests) == 4
        assert all("no JSON schema" in answer.notes[0] for answer in answers)

    @pytest.mark.parametrize("name", ["Qwen/Qwen2.5-Coder-1.5B-Instruct", "deepseek/deepseek-chat", "local.gguf"])
    def test_is_held_to_a_schema_whatever_the_model_is_called(self, name: str) -> None:
        call = dataclasses.replace(CALL, json_schema=plan_schema(), max_tokens=9)
        answer = ask(chat(), call=call, spec=f"openai:{name}")
        assert "response_format" in answer.sent
        assert answer.sent["max_tokens"] == 9
        assert answer.notes == ()

    def test_without_the_temperature_asked_for_says_so(self) -> None:
        call = dataclasses.replace(CALL, temperature=0.5)
        answer = ask(chat(), call=call, spec="openai:gpt-5")
        assert "temperature" not in answer.sent
        assert answer.notes == ("temperature 0.5 was not sent: this model does not take it",)


class TestOddAnswers:
    """They are answers: paid for, stored, and refused by the parser with a reason."""

    @pytest.mark.parametrize(
        ("script", "verdict"),
        [
            (chat(""), Verdict.TRUNCATED),
            (chat(None), Verdict.TRUNCATED),
            (chat(None, finish="length", reasoning_content="hmm"), Verdict.TRUNCATED),
            (chat("", finish="length"), Verdict.TRUNCATED),
            (chat("```cpp\nvoid run", finish="length"), Verdict.TRUNCATED),
            (chat("<think>perhaps\n```cpp\nvoid run() {}\n```\n"), Verdict.TRUNCATED),
            (chat(None, refusal="I can't do that"), Verdict.REFUSED),
            (chat("", finish="content_filter"), Verdict.REFUSED),
            (chat([]), Verdict.TRUNCATED),
            (chat({"a": 1}), Verdict.TRUNCATED),
            (chat([1, {"x": 2}]), Verdict.TRUNCATED),
            (chat("x" * 5_000_000), Verdict.UNPARSABLE),
            (chat(None, reasoning_details=[{"type": "reasoning.encrypted", "data": "abc"}]), Verdict.TRUNCATED),
        ],
        ids=lambda value: str(getattr(value, "body", value))[130:230],
    )
    def test_are_paid_and_refused(self, script: Scripted, verdict: Verdict) -> None:
        answer = ask(script)
        assert answer.raw == script.body
        assert (answer.tokens_in, answer.tokens_out) == (100, 20)
        reply = parse_program(answer.text, languages=["cpp"], entry_point="run", finish=answer.finish)
        assert isinstance(reply, Refusal)
        assert reply.verdict is verdict

    def test_with_content_as_a_list_are_joined(self) -> None:
        assert ask(chat([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}])).text == "hello"

    def test_that_are_not_utf8_reach_no_program(self) -> None:
        body = json.dumps(json.loads(chat("```cpp\nvoid run() { /* ÿ */ }\n```").body), ensure_ascii=False).encode(
            "latin-1"
        )
        answer = ask(raw(body))
        assert answer.raw == body
        assert answer.tokens_in == 100
        reply = parse_program(answer.text, languages=["cpp"], entry_point="run", finish=answer.finish)
        assert isinstance(reply, Refusal)
        assert "not valid UTF-8" in reply.reason


class TestFailures:
    @pytest.mark.parametrize(
        ("script", "kind", "says"),
        [
            (status(401, "Incorrect API key provided: sk-abcdefgh12"), BadKey, "provided: [key]"),
            (status(403, "forbidden"), BadKey, "Check the key"),
            (status(402, "pay"), QuotaExhausted, "top it up"),
            (status(429, "insufficient balance"), QuotaExhausted, "top it up"),
            (status(429, "You exceeded your current quota", code="insufficient_quota"), QuotaExhausted, "quota"),
            (status(429, "insufficient_quota", headers={"Retry-After": "1"}), QuotaExhausted, "quota"),
            (status(400, "Your credit balance is too low"), QuotaExhausted, "credit balance"),
            (status(404, "no such model"), BadModelRequest, "Check the model's name"),
            (status(400, "unknown parameter: foo"), BadModelRequest, "foo"),
            (status(400, "maximum context length is 8192 tokens"), ContextTooLong, "context window"),
            (status(413, "too big"), ContextTooLong, "context window"),
            (Scripted(302, b"", {"Location": "http://127.0.0.1:9/v1"}), BadModelRequest, "Redirects are not followed"),
        ],
        ids=lambda value: str(getattr(value, "status", ""))[:12],
    )
    def test_that_no_repetition_cures_are_not_repeated(
        self, script: Scripted, kind: type[ModelError], says: str
    ) -> None:
        error = failure(script)
        assert type(error) is kind
        assert says in str(error)
        assert not error.transient
        assert not error.maybe_billed
        assert error.raw == script.body

    @pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 529])
    def test_that_pass_are_repeated(self, code: int) -> None:
        answer = ask(status(code), status(code), chat("at last"))
        assert (answer.text, answer.tries) == ("at last", 3)

    @pytest.mark.parametrize(("code", "kind"), [(429, RateLimited), (500, ModelUnavailable), (503, ModelUnavailable)])
    def test_that_do_not_pass_end_after_the_tries_allowed(self, code: int, kind: type[ModelError]) -> None:
        error = failure(status(code), asked=3)
        assert type(error) is kind
        assert error.transient

    def test_with_a_short_retry_after_are_waited_for(self) -> None:
        assert ask(status(429, headers={"Retry-After": "0"}), chat("now")).text == "now"

    def test_with_a_long_retry_after_are_left_to_the_run(self) -> None:
        error = failure(status(429, headers={"Retry-After": "900"}))
        assert type(error) is RateLimited
        assert error.retry_after_s == 900

    @pytest.mark.parametrize("script", [hang(), drip(chat("hello"), 0.02)], ids=["hang", "drip"])
    def test_to_answer_in_time_end_at_the_deadline(self, script: Scripted) -> None:
        error = failure(script, call=IMPATIENT)
        assert type(error) is ModelTimeout
        assert "within 0.4 s" in str(error)
        assert error.maybe_billed

    @pytest.mark.parametrize("at", [0, 30])
    def test_by_a_cut_connection_may_have_been_billed(self, at: int) -> None:
        error = failure(cut(chat("hello"), at))
        assert type(error) is ModelUnavailable
        assert "broke the connection off" in str(error)
        assert error.maybe_billed

    def test_to_connect_are_not_billed(self) -> None:
        with ModelServer([chat()]) as server:
            model = open_at(server)
        with pytest.raises(ModelUnavailable, match="cannot be reached") as caught:
            model.complete(CALL)
        assert not caught.value.maybe_billed
        assert caught.value.tries == 3

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"[]",
            b"<html>oops</html>",
            b'{"a": 1}',
            b'{"choices": []}',
            b'{"choices": [{}]}',
            b"[" * 100_000,
            b"\xff",
        ],
        ids=lambda body: repr(body[:12]),
    )
    def test_to_speak_the_protocol_are_bad_answers(self, body: bytes) -> None:
        error = failure(raw(body))
        assert type(error) is BadAnswer
        assert error.maybe_billed
        assert error.raw == body

    def test_by_an_endless_response_are_cut_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exchanges, "MAX_RESPONSE_BYTES", 100_000)
        assert "more than is read" in str(failure(chat("x" * 200_000)))

    def test_leave_the_model_usable(self) -> None:
        with ModelServer([hang(), chat("fine")]) as server:
            model = open_at(server)
            with pytest.raises(ModelTimeout):
                model.complete(IMPATIENT)
            assert model.complete(CALL).text == "fine"


class TestKeys:
    @pytest.fixture
    def vendor(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[ModelServer], None]:
        """Let a server of ours be OpenAI's own host."""

        def move(server: ModelServer) -> None:
            monkeypatch.setitem(PROVIDERS, "openai", dataclasses.replace(PROVIDERS["openai"], base_url=server.url))  # type: ignore[arg-type]

        return move

    def test_go_to_their_own_host(self, vendor: Callable[[ModelServer], None], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # must not divert it
        with ModelServer([responses("hello", model="gpt-5-2025-08-07")]) as server:
            vendor(server)
            model = open_model("openai:gpt-5", retries=QUICK)
            answer = model.complete(dataclasses.replace(CALL, max_tokens=50))
        assert server.requests[0].headers["authorization"] == "Bearer sk-own"
        assert server.requests[0].path == "/v1/responses"
        assert (answer.text, answer.tokens_in, answer.tokens_cached, answer.tokens_reasoning) == (
            "hello",
            1000,
            600,
            50,
        )
        assert answer.usd is not None  # a listed price
        assert answer.usd > 0
        assert model.context_tokens is not None

    def test_go_to_no_other_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
            monkeypatch.setenv(name, "secret-of-the-vendor")
        with ModelServer([chat()]) as server:
            open_at(server).complete(CALL)
        assert "secret-of-the-vendor" not in json.dumps([dict(r.headers) | dict(r.body) for r in server.requests])
        assert "authorization" not in server.requests[0].headers

    def test_are_named_by_the_user_for_another_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", "mine")
        with ModelServer([chat()]) as server:
            open_at(server, key_env="MY_KEY").complete(CALL)
        assert server.requests[0].headers["authorization"] == "Bearer mine"

    def test_belong_to_the_address_that_a_name_brings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", "mine")
        monkeypatch.setenv("OTHER_KEY", "other")
        with ModelServer([chat()]) as one, ModelServer([chat()]) as two:
            for name in (f"a@{one.url}#MY_KEY", f"b@{one.url}/"):
                model = open_model(f"openai:{name}", base_url=two.url, key_env="OTHER_KEY", retries=QUICK)
                model.complete(CALL)
        assert [r.body["model"] for r in one.requests] == ["a", "b"]
        assert [r.headers.get("authorization") for r in one.requests] == ["Bearer mine", None]
        assert two.requests == []

    def test_do_not_follow_redirects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", "mine")
        with ModelServer([chat()]) as thief:
            moved = Scripted(307, b"", {"Location": thief.url + "/chat/completions"})
            with ModelServer([moved]) as server, pytest.raises(BadModelRequest):
                open_at(server, key_env="MY_KEY").complete(CALL)
        assert thief.requests == []

    def test_that_are_missing_are_named(self) -> None:
        with pytest.raises(ModelSetupError, match="set the environment variable OPENAI_API_KEY"):
            open_model("openai:gpt-5")
        with pytest.raises(ModelSetupError, match="MY_KEY"):
            open_model("openai:any", base_url="http://127.0.0.1:9/v1", key_env="MY_KEY")

    def test_are_not_shown_by_a_repr(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
        assert "sk-own" not in repr(open_model("openai:gpt-5"))


class TestOtherProtocols:
    """Where the packages of these providers are installed."""

    @pytest.fixture
    def at(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, ModelServer], None]:
        def move(provider: str, server: ModelServer) -> None:
            home = server.url.removesuffix("/v1")
            monkeypatch.setitem(PROVIDERS, provider, dataclasses.replace(PROVIDERS[provider], base_url=home))  # type: ignore[arg-type]
            monkeypatch.setenv(PROVIDERS[provider].key_env, "key-of-its-own")

        return move

    def test_anthropic(self, at: Callable[[str, ModelServer], None], monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("anthropic")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "hello"}],
            "stop_reason": "max_tokens",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 90,
                "output_tokens": 20,
            },
        }
        with ModelServer([status(529), raw(json.dumps(message).encode())]) as server:
            at("anthropic", server)
            call = dataclasses.replace(CALL, max_tokens=99)
            answer = open_model("anthropic:claude-sonnet-4-5", retries=QUICK).complete(call)
        assert (answer.text, answer.finish, answer.tries) == ("hello", "length", 2)
        assert (answer.tokens_in, answer.tokens_cached) == (100, 90)
        assert answer.usd is not None
        parts = server.requests[-1].body["messages"][0]["content"]
        assert [part["text"] for part in parts] == ["the task\n", "write it"]
        assert "cache_control" in parts[0]  # the stable part ends where the provider may cache
        headers = json.dumps(dict(server.requests[-1].headers))
        assert "key-of-its-own" in headers
        assert "another-token" not in headers

    def test_google(self, at: Callable[[str, ModelServer], None]) -> None:
        pytest.importorskip("google.genai")
        body = {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 7},
            "modelVersion": "gemini-2.5-flash",
        }
        call = dataclasses.replace(CALL, max_tokens=99, json_schema=plan_schema())
        with ModelServer([raw(json.dumps(body).encode())]) as server:
            at("google", server)
            answer = open_model("google:gemini-2.5-flash", retries=QUICK).complete(call)
        assert (answer.text, answer.tokens_in, answer.tokens_out, answer.tokens_reasoning) == ("hello", 100, 27, 7)
        assert answer.usd is not None
        assert answer.notes == ()
        assert server.requests[0].headers["x-goog-api-key"] == "key-of-its-own"
