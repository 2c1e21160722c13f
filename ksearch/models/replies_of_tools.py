"""What coding agents' command lines print, read as answers: the reply, what it cost, and why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ksearch.errors import BadAnswer
from ksearch.models.base import Answer, Call
from ksearch.models.classify import text_error
from ksearch.models.printed import as_object, count, document, events, usd_of

LAST_MESSAGE = "last-message.txt"  # of Codex, in the folder for its files
FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "stop": "stop", "max_tokens": "length", "length": "length",
    "refusal": "refusal", "content_filter": "content_filter", "content-filter": "content_filter",
}  # fmt: skip


def no_answer(name: str, output: bytes) -> BadAnswer:
    cure = (
        f"Leave its output flags to K-Search, or name it by its path (command:/path/to/{name}) to take its plain text"
    )
    return BadAnswer(f"{name} printed no answer in its JSON form. {cure}", maybe_billed=True, raw=output[:10_000])


# --- claude and qwen: one result object ----------------------------------------------------------------------


def _result(output: bytes) -> dict[str, Any]:
    """The result message, alone or at the end of a list."""
    found = document(output)
    messages = found if isinstance(found, list) else [found]
    return next((m for m in reversed(messages) if as_object(m).get("type") == "result"), {})


def result_said(output: bytes) -> str:
    result = _result(output)
    errors = result.get("errors")
    told = [
        result.get("result"),
        *(errors if isinstance(errors, list) else ()),
        as_object(result.get("error")).get("message"),
    ]
    words = [text for text in told if isinstance(text, str) and text.strip()]
    return " ".join(words) or str(result.get("subtype") or "")


def read_result(name: str, output: bytes) -> Answer:
    result = _result(output)
    if not result:
        raise no_answer(name, output)
    if result.get("is_error") or result.get("subtype", "success") != "success":
        raise text_error(f"{name} gave no answer", result_said(output), output)
    held, text = result.get("structured_output"), result.get("result")
    if (
        isinstance(text, str)
        and text.startswith("[API Error")
        and not count(as_object(result.get("usage")).get("output_tokens"))
    ):
        raise text_error(f"{name} gave no answer", text, output)  # as Qwen puts it, with success all around it
    usage, cached = as_object(result.get("usage")), as_object(result.get("usage")).get("cache_read_input_tokens")
    models = as_object(result.get("modelUsage"))
    return Answer(
        json.dumps(held, ensure_ascii=False) if isinstance(held, dict) else text if isinstance(text, str) else "",
        output,
        FINISH.get(str(result.get("stop_reason"))),
        next(iter(models), "") or _model_of(output) or name,
        _input_tokens(name, usage, cached),
        count(usage.get("output_tokens")),
        count(cached),
        usd=usd_of(result.get("total_cost_usd")),
    )


def _input_tokens(name: str, usage: Mapping[str, Any], cached: Any) -> int | None:
    """Claude counts what came from its cache, or went into it, apart; Qwen counts it in."""
    apart = (usage.get("cache_creation_input_tokens"), cached) if name == "claude" else ()
    return count(usage.get("input_tokens"), *apart)


def _model_of(output: bytes) -> str:
    found = document(output)
    messages = found if isinstance(found, list) else []
    return next((m["model"] for m in messages if isinstance(as_object(m).get("model"), str)), "")


# --- codex: events, and the last message in a file ------------------------------------------------------------


def read_codex(output: bytes, _: Call, folder: Path) -> Answer:
    usage, texts = dict[str, Any](), list[str]()
    for event in events(output):
        item = as_object(event.get("item"))
        if event.get("type") == "turn.completed":
            usage = as_object(event.get("usage"))
        elif event.get("type") == "item.completed" and item.get("type") == "agent_message":
            texts += [item["text"]] if isinstance(item.get("text"), str) else []
    file = folder / LAST_MESSAGE
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.is_file() else ""
    if not text and not texts:
        if said := codex_said(output):
            raise text_error("codex gave no answer", said, output)
        raise no_answer("codex", output)
    return Answer(
        text or texts[-1],
        output,
        "stop" if usage else None,
        "codex",
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("cached_input_tokens")),
        count(usage.get("reasoning_output_tokens")),
    )


def codex_said(output: bytes) -> str:
    failed = [e for e in events(output) if e.get("type") in ("turn.failed", "error")]
    words = [as_object(e.get("error")).get("message") or e.get("message") for e in failed]
    return next((text for text in reversed(words) if isinstance(text, str)), "")


# --- gemini: one object with statistics by model ------------------------------------------------------------


def read_gemini(output: bytes, _: Call, __: Path) -> Answer:
    found = as_object(document(output))
    if said := gemini_said(output):
        raise text_error("gemini gave no answer", said, output)
    if not isinstance(found.get("response"), str):
        raise no_answer("gemini", output)
    models = as_object(as_object(found.get("stats")).get("models"))
    tokens = {name: as_object(as_object(stats).get("tokens")) for name, stats in models.items()}

    def total(*names: str) -> int | None:
        return count(*(one.get(name) for one in tokens.values() for name in names))

    most = max(tokens, key=lambda name: count(tokens[name].get("total")) or 0, default="gemini")
    thought = total("thoughts")
    # The prompt's tokens count what came from the cache, the candidates' do not count the thoughts.
    return Answer(
        found["response"],
        output,
        None,
        most,
        total("prompt"),
        total("candidates", "thoughts"),
        total("cached"),
        thought,
    )


def gemini_said(output: bytes) -> str:
    error = as_object(document(output)).get("error")
    return str(as_object(error).get("message") or error) if error else ""


# --- opencode: events, with the price of each step ------------------------------------------------------------


def read_opencode(output: bytes, _: Call, __: Path) -> Answer:
    found = events(output)
    texts = [as_object(e.get("part")).get("text") for e in found if e.get("type") == "text"]
    steps = [as_object(e.get("part")) for e in found if e.get("type") == "step_finish"]
    words = [text for text in texts if isinstance(text, str)]
    if not words and (said := opencode_said(output)):
        raise text_error("opencode gave no answer", said, output)
    if not words and not steps:
        raise no_answer("opencode", output)
    tokens = [as_object(step.get("tokens")) for step in steps]
    caches = [as_object(one.get("cache")) for one in tokens]
    costs = [cost for step in steps if (cost := usd_of(step.get("cost"))) is not None]
    read = count(*(c.get("read") for c in caches))
    return Answer(
        "\n".join(words),
        output,
        FINISH.get(str(steps[-1].get("reason"))) if steps else None,
        "opencode",
        count(*(t.get("input") for t in tokens), *(c.get("write") for c in caches), read),
        count(*(t.get(name) for t in tokens for name in ("output", "reasoning"))),
        read,
        count(*(t.get("reasoning") for t in tokens)),
        usd=sum(costs) if costs and any(costs) else None,  # a subscription reports 0, which is no price
    )


def opencode_said(output: bytes) -> str:
    errors = [as_object(e.get("error")) for e in events(output) if e.get("type") == "error"]
    return next((str(as_object(e.get("data")).get("message") or e.get("name")) for e in reversed(errors)), "")
