"""What the user writes names a model, or is refused with what to write instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ksearch.errors import ModelSetupError
from ksearch.models import AgentModel, Call, open_model


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "names no model"),
        ("gpt-5", "there is no default"),
        ("openai", "there is no default"),
        ("openai:", "there is no default"),
        ("nobody:gpt", "no model provider 'nobody'"),
        ("openai:@http://127.0.0.1:9/v1", "names no model"),
        ("openai:m@http://", "name a host"),
        ("openai:m@http://127.0.0.1:9/v1?key=1", "no user, password or query"),
        ("openai:m@http://127.0.0.1:9/v1#NO_SUCH_KEY", "NO_SUCH_KEY"),
        ("command:", "names no program"),
        ("command:no-such-program-here", "no program 'no-such-program-here' on PATH"),
        ("command:'open", "No closing quotation"),
        ("transcript:", "names no model"),
        ("transcript:/no/such/file", "cannot read the transcript"),
        ("agent:x", "names no model"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("google:gemini", "GEMINI_API_KEY"),
    ],
)
def test_what_names_no_model_is_refused(spec: str, says: str) -> None:
    with pytest.raises(ModelSetupError, match=says):
        open_model(spec)


@pytest.mark.parametrize("given", [{"spec": "openai:m@http://127.0.0.1:9/v1#sk-abc"}, {"key_env": "sk-abc"}])
def test_a_key_in_the_place_of_its_variable_is_refused_and_not_repeated(given: dict[str, str]) -> None:
    with pytest.raises(ModelSetupError, match="never the key itself") as caught:
        open_model(**{"spec": "openai:m", **given})  # type: ignore[arg-type]
    assert "sk-abc" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "http://user:pass@host/v1", "http://h/?k=1"]
)
def test_a_url_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ModelSetupError, match="base URL"):
        open_model("openai:any", base_url=url)


def test_a_base_url_means_nothing_to_a_command() -> None:
    with pytest.raises(ModelSetupError, match="means nothing"):
        open_model("command:cat", base_url="http://127.0.0.1:9/v1")


def test_the_agent_is_a_sentinel_that_nobody_calls() -> None:
    model = open_model("agent")
    assert isinstance(model, AgentModel)
    with pytest.raises(NotImplementedError):
        model.complete(Call("planner", "x"))


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.delitem(sys.modules, "ksearch.models.provider", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ModelSetupError, match=r"pip install 'k-search\[models\]'"):
        open_model("openai:gpt-5")


def test_a_provider_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    for name in list(sys.modules):
        if name.startswith(("pydantic_ai.models.anthropic", "pydantic_ai.providers.anthropic")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelSetupError, match=r"pip install 'k-search\[anthropic\]'"):
        open_model("anthropic:claude-sonnet-4-5")


def test_models_that_need_no_library_load_none(tmp_path: Path) -> None:
    code = (
        "import sys; from ksearch.models import open_model; open_model('agent'); open_model('command:cat');"
        "print(sorted({'pydantic', 'pydantic_ai', 'openai', 'httpx2', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
