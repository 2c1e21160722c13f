"""From what the user wrote to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ksearch.errors import ModelSetupError
from ksearch.models.base import AgentModel, Model, Price
from ksearch.models.command import CommandModel
from ksearch.models.providers import resolve
from ksearch.models.retry import Retrying, RetryPolicy
from ksearch.models.transcript import Recorder, TranscriptModel

WAYS = "PROVIDER:NAME (as openai:gpt-5.2, or openai:qwen@http://host:8000/v1), command:CMD, transcript:FILE or agent"


def open_model(
    spec: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    price: Price | None = None,
    context_tokens: int | None = None,
    pass_env: Sequence[str] = (),
    record: Path | None = None,
    retries: RetryPolicy | None = None,
) -> Model:
    """The model that a spec names.

    Args:
        spec: "PROVIDER:NAME", "PROVIDER:NAME@URL", "command:CMD ARGS", "transcript:FILE" or "agent".
        base_url: another address of the provider's protocol, for a NAME without one; for OpenAI-compatible servers with
            openai:NAME.
        key_env: name of the environment variable that holds the key, instead of the provider's own. With `base_url` no
            other variable is read.
        price: dollars per million tokens of a model that no price list knows.
        context_tokens: its context window, where the library does not know it.
        pass_env: further environment variables for a command.
        record: file that every answer is appended to; `transcript:FILE` replays it.
        retries: how often to ask again, for models behind an API.

    Raises:
        ModelSetupError: with the fix; nothing was sent.
    """
    kind, _, rest = spec.strip().partition(":")
    if kind not in ("command", "transcript", "agent", ""):
        model = _provider_model(kind, rest, base_url, key_env, price, context_tokens, retries)
    elif base_url or key_env:
        raise ModelSetupError(f"a base URL or key variable means nothing to {spec!r}: only to PROVIDER:NAME")
    elif kind == "agent" and not rest:
        return AgentModel()
    elif kind == "command":
        model = CommandModel(rest, pass_env)
    elif kind == "transcript" and rest:
        model = TranscriptModel(Path(rest))
    else:
        raise ModelSetupError(f"{spec!r} names no model. Write {WAYS}")
    return Recorder(model, record) if record is not None else model


def _provider_model(
    kind: str,
    name: str,
    base_url: str | None,
    key_env: str | None,
    price: Price | None,
    context_tokens: int | None,
    retries: RetryPolicy | None,
) -> Model:
    if not name:
        raise ModelSetupError(f"{kind!r} names no model and there is no default. Write {WAYS}")
    endpoint = resolve(kind, name, base_url, key_env)
    try:
        from ksearch.models.provider import ProviderModel
    except ImportError:
        raise ModelSetupError(
            f"the model {kind}:{name} needs packages that are not installed: pip install 'k-search[models]'"
        ) from None
    return Retrying(ProviderModel(endpoint, price, context_tokens), retries or RetryPolicy())
