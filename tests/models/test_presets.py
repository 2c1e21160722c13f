"""Command lines of coding agents as models, each against a small fake of its documented behaviour."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ksearch.errors import BadAnswer, BadKey, ModelError, ModelUnavailable, QuotaExhausted, RateLimited
from ksearch.models import Answer, Call, open_model
from ksearch.models.command import CommandModel
from ksearch.models.presets import PRESETS
from ksearch.protocol import Cost
from ksearch.replies import plan_schema
from tests.models.agent_fakes import FAKES, install

CALL = Call("writer", "new part", stable="stable part\n", system="system part", timeout_s=30)
NAMES = sorted(PRESETS)


@pytest.fixture(autouse=True)
def _fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("FAKE_MODE", raising=False)


def ask(spec: str, call: Call = CALL) -> tuple[Answer, dict[str, Any]]:
    answer = open_model(f"command:{spec}").complete(call)
    return answer, json.loads(answer.text)


def failure(spec: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> ModelError:
    monkeypatch.setenv("FAKE_MODE", mode)
    with pytest.raises(ModelError) as caught:
        open_model(f"command:pass=FAKE_MODE {spec}").complete(CALL)
    return caught.value


def test_every_preset_has_a_fake() -> None:
    assert set(FAKES) == set(PRESETS)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_comes_by_stdin_into_an_empty_folder_without_keys(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "one")
    monkeypatch.setenv("OPENAI_API_KEY", "two")
    monkeypatch.setenv("GEMINI_API_KEY", "three")
    answer, seen = ask(name)
    whole = (seen["options"].get("system_prompt", "") + "\n\n" + seen["stdin"]).strip()
    assert whole == "system part\n\nstable part\nnew part"
    assert seen["folder"] == []
    assert not [key for key in seen["env"] if key.endswith("_API_KEY")]
    assert answer.raw.decode().strip()
    assert answer.seconds > 0


@pytest.mark.parametrize("name", NAMES)
def test_further_arguments_are_passed_on(name: str) -> None:
    assert ask(f"{name} --model some-model")[1]["options"]["model"] == "some-model"


@pytest.mark.parametrize(
    ("name", "model", "cost", "cached", "reasoning", "finish"),
    [
        ("claude", "claude-fake-1", Cost(1075, 0.0123), 900, None, "stop"),
        ("codex", "command:codex", Cost(1500, None), 1000, 250, "stop"),
        ("gemini", "gemini-fake-pro", Cost(932, None), 500, 40, None),
        ("qwen", "qwen-fake", Cost(1050, None), 400, None, None),
        ("opencode", "command:opencode", Cost(665, 0.002), 600, 5, "stop"),
    ],
)
def test_tokens_and_money_are_what_the_tool_reports(
    name: str, model: str, cost: Cost, cached: int, reasoning: int | None, finish: str | None
) -> None:
    answer, _ = ask(name)
    assert (answer.model, answer.cost(CALL), answer.finish) == (model, cost, finish)
    assert (answer.tokens_cached, answer.tokens_reasoning) == (cached, reasoning)


def test_claude_is_held_to_a_schema() -> None:
    call = dataclasses.replace(CALL, role="planner", json_schema=plan_schema())
    answer = open_model("command:claude").complete(call)
    plan = json.loads(answer.text)
    assert plan["edits"] == []
    assert json.loads(plan["assessment"])["options"]["json_schema"] == plan_schema()


def test_codex_without_its_last_message_in_a_file_is_read_from_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "no file")
    assert ask("pass=FAKE_MODE codex")[1]["stdin"]


def test_codex_has_neither_shell_nor_servers_nor_the_web() -> None:
    given = ask("codex")[1]["options"]["config"]
    assert {"mcp_servers={}", "web_search=disabled", "features.shell_tool=false"} <= set(given)


def test_a_refusal_is_a_reply_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "refusal")
    answer = open_model("command:pass=FAKE_MODE claude").complete(CALL)
    assert (answer.text, answer.finish) == ("", "refusal")


@pytest.mark.parametrize(
    ("name", "mode", "kind", "says"),
    [
        ("claude", "limit", QuotaExhausted, "resets 3pm"),
        ("claude", "login", BadKey, "Please run /login"),
        ("claude", "busy", RateLimited, "overloaded"),
        ("claude", "empty", QuotaExhausted, "Credit balance is too low"),
        ("claude", "turns", ModelUnavailable, "error_max_structured_output_retries"),
        ("codex", "limit", QuotaExhausted, "Try again at 3:00 PM"),
        ("gemini", "limit", QuotaExhausted, "requests per day"),
        ("qwen", "limit", QuotaExhausted, "insufficient_quota"),
        ("qwen", "bad key", BadKey, "401"),
        ("opencode", "limit", RateLimited, "rate limit exceeded"),
    ],
)
def test_a_failure_is_what_the_tool_says_it_is(
    name: str, mode: str, kind: type[ModelError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = failure(name, mode, monkeypatch)
    assert type(error) is kind
    assert says in str(error)
    assert name in str(error)


NONSENSE = [
    b"", b"hello", b"null", b"[]", b"{}", b'{"type": "result"', b"[1, 2]", b'{"type": 3}', b'{"response": 7}',
    b'{"type":"item.completed","item":{"type":"agent_message","text":null}}', b'{"stats": [], "error": 0}',
    b'[{"type":"result","errors":7,"is_error":1}]', b'{"type":"step_finish","part":[]}x', b"{\n" * 9999, b"\xff\xfe",
]  # fmt: skip


@pytest.mark.parametrize("output", NONSENSE)
@pytest.mark.parametrize("name", NAMES)
def test_nonsense_in_place_of_its_form_is_an_error_and_never_a_crash(name: str, output: bytes, tmp_path: Path) -> None:
    assert isinstance(PRESETS[name].said(output), str)
    with pytest.raises(ModelError, match=name):
        PRESETS[name].read(output, CALL, tmp_path / "none")


def test_an_output_format_of_ones_own_is_named_as_the_cause() -> None:
    with pytest.raises(BadAnswer, match=r"Leave its output flags to K-Search.*command:/path/to/claude"):
        open_model("command:claude --output-format text").complete(CALL)


def test_a_tool_named_by_its_path_is_taken_as_it_is(tmp_path: Path) -> None:
    model = CommandModel(f"{tmp_path / 'opencode'} run --format json --title mine")
    assert model.preset is None
    with pytest.raises(ModelError, match="OPENCODE_PERMISSION"):
        model.complete(CALL)


def test_the_folder_for_its_files_is_gone_afterwards() -> None:
    _, seen = ask("codex")
    assert not Path(seen["options"]["output_last_message"]).parent.exists()
