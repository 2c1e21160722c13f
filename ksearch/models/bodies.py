"""Response bodies read directly: the text as it came, where the library would change it or cannot read the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ksearch.models.base import Answer
from ksearch.models.exchange import read_body

# How a reply ended, as compatible servers word it, in lower case. One that was interrupted is no whole reply.
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "sensitive", "safety"), "content_filter"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool_call"),
    **dict.fromkeys(("error", "abort", "cancelled", "network_error", "insufficient_system_resource"), "error"),
    **dict.fromkeys(("failed", "incomplete", "queued", "in_progress"), "error"),
}
_CODES = {"server_error": 500, "rate_limit_exceeded": 429, "insufficient_quota": 429}


def read_directly(body: bytes, model: str) -> Answer | None:
    """A chat completion, or an answer of the Responses API; None where it is neither."""
    data = read_body(body)
    if data is None:
        return None
    return _from_responses(data, body, model) if isinstance(data.get("output"), list) else _from_chat(data, body, model)


def error_code(body: bytes) -> int | None:
    """The status of an error that came with status 200, as gateways send it."""
    data = read_body(body) or {}
    error = data.get("error")
    code = error.get("code", data.get("code")) if isinstance(error, dict) else None
    code = _CODES.get(code, code) if isinstance(code, str) else code
    status = int(code) if isinstance(code, int | str) and re.fullmatch(r"[345]\d\d", str(code)) else None
    return None if data.get("choices") else status


def tells_of_cache(body: bytes) -> bool:
    """Whether the usage says what was read from a cache, be it 0: the library gives 0 also where nothing is said."""
    data = read_body(body) or {}
    usage = data.get("usage", data.get("usageMetadata"))
    return "cache" in json.dumps(usage).lower()


def is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _from_chat(data: Mapping[str, Any], body: bytes, model: str) -> Answer | None:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        return None
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    text = _joined(part.get("text") if isinstance(part, dict) else part for part in parts)
    return _answer(data, body, model, text, _joined([message.get("refusal")]), _finish(first.get("finish_reason")))


def _from_responses(data: Mapping[str, Any], body: bytes, model: str) -> Answer:
    items = [item for item in data["output"] if isinstance(item, dict)]
    contents = (item.get("content") for item in items if item.get("type") == "message")
    parts = [part for content in contents if isinstance(content, list) for part in content if isinstance(part, dict)]
    text, refusal = _joined(part.get("text") for part in parts), _joined(part.get("refusal") for part in parts)
    details = data.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    finish = _finish(reason) or _finish(data.get("status"))
    if finish == "stop" and not text and any(item.get("type") == "function_call" for item in items):
        finish = "tool_call"
    return _answer(data, body, model, text, refusal, finish)


def _answer(data: Mapping[str, Any], body: bytes, model: str, text: str, refusal: str, finish: str | None) -> Answer:
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    numbers = {key: value for key, value in counts.items() if isinstance(value, int) and value >= 0}
    named = data.get("model")
    return Answer(
        text=text or refusal,
        raw=body,
        finish="refusal" if refusal and not text else finish,
        model=named if isinstance(named, str) else model,
        tokens_in=numbers.get("prompt_tokens", numbers.get("input_tokens")),
        tokens_out=numbers.get("completion_tokens", numbers.get("output_tokens")),
    )


def _finish(said: object) -> str | None:
    return _FINISHES.get(said.lower()) if isinstance(said, str) else None


def _joined(texts: Any) -> str:
    return "".join(text for text in texts if isinstance(text, str))
