"""What a provider's failure means: ask again soon, ask again later, or do not ask again.

Status and wording decide together, because 429 stands for "too fast" as well as for "no money left".
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ksearch.errors import (
    BadKey,
    BadModelRequest,
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from ksearch.models.resets import reset_s

# No waiting helps against these.
_NO_MONEY = re.compile(
    r"insufficient[ _-](?:quota|balance|funds|credits?)|billing[ _](?:hard[ _])?limit|credit balance|out of credits"
    r"|not enough (?:credits?|balance)|payment required|account .{0,20}suspended|spend(?:ing)?[ _]limit|arrears",
    re.IGNORECASE,
)
# Google words a limit per minute like this too, but then says when to come back.
_PERHAPS_NO_MONEY = re.compile(
    r"exceeded your current quota|quota exceeded|usage[ _]limit|monthly limit", re.IGNORECASE
)
# A subscription's limit, as the command lines of coding agents word it: it is over at a time that they name.
_PLAN_LIMIT = re.compile(
    r"hit your (?:usage |session |weekly |daily |\d+-hour )?limit|(?:usage|session|weekly|daily|hour) limit reached",
    re.IGNORECASE,
)
_TOO_FAST = re.compile(r"rate[ _-]?limit|too many requests|\b429\b|overloaded", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens|input token count"
    r"|reduce the length|exceeds? the (?:available|model'?s?) context",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?:invalid|incorrect|missing|wrong|no).{0,12}(?:api[ _-]?key|credentials?|authentication)"
    r"|unauthori[sz]ed|not logged in|please (?:log ?in|run .{0,20}login)|authentication[ _](?:error|failed|required)",
    re.IGNORECASE,
)
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
_SECRET = re.compile(r"\b(?:sk|pk|gsk|xai|key)-[A-Za-z0-9_*-]{6,}|\bAIza[A-Za-z0-9_-]{8,}|(?i:bearer)\s+\S+")


def retry_after_s(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds to wait as the provider gives them: Retry-After (seconds or date), retry-after-ms, or in the body."""
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    if (seconds := _number(lower.get("retry-after-ms"))) is not None:
        return seconds / 1000
    given = lower.get("retry-after")
    if (seconds := _number(given)) is not None:
        return seconds
    if given:
        try:
            until = email.utils.parsedate_to_datetime(given)
        except ValueError:
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    found = _RETRY_DELAY.search(body)
    return float(found.group(1)) if found else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def http_error(who: str, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that an HTTP answer of status 300 or more stands for."""
    text = body[:20_000].decode("utf-8", "replace")
    wait = retry_after_s(headers, text)
    if wait is None and status == 429:
        wait = reset_s(text, datetime.now().astimezone())
    said = message_of(text)
    kind, cure = _http_kind(status, text, wait)
    message = f"{who} answered {status}{': ' + said.rstrip('.') if said else ''}. {cure}"
    return kind(message, retry_after_s=wait, maybe_billed=status == 504, raw=body)


def _http_kind(status: int, text: str, wait: float | None) -> tuple[type[ModelError], str]:
    if 300 <= status < 400:
        return BadModelRequest, "Redirects are not followed, so that the key reaches no other host: name the final URL."
    quota = status == 402 or (status in (400, 403, 429) and _NO_MONEY.search(text))
    if quota or (status == 429 and wait is None and _PERHAPS_NO_MONEY.search(text)):
        return QuotaExhausted, "The account's quota or balance is used up: top it up, then resume."
    if status in (401, 403):
        return BadKey, "Check the key in the environment variable that belongs to this provider."
    if status in (400, 413, 422) and (status == 413 or _TOO_LONG.search(text)):
        cure = "resume with less --prompt-tokens or --reply-tokens."
        return ContextTooLong, f"Prompt and reply are more than the model's context window: {cure}"
    if status == 404:
        return BadModelRequest, "Check the model's name and the base URL."
    if status == 429:
        return RateLimited, "Too many calls at once."
    if status in (408, 409, 425) or status >= 500:
        return ModelUnavailable, "The provider fails or is overloaded."
    return BadModelRequest, "The provider rejects the request."


def text_error(who: str, said: str, raw: bytes = b"") -> ModelError:
    """The error that a program's last words stand for, where there is no status (a command on this machine)."""
    kinds: list[tuple[re.Pattern[str], type[ModelError]]] = [
        (_NO_MONEY, QuotaExhausted),
        (_PERHAPS_NO_MONEY, QuotaExhausted),
        (_PLAN_LIMIT, QuotaExhausted),
        (_TOO_FAST, RateLimited),
        (_TOO_LONG, ContextTooLong),
        (_KEY, BadKey),
    ]
    kind = next((kind for pattern, kind in kinds if pattern.search(said)), ModelUnavailable)
    wait = reset_s(said, datetime.now().astimezone()) if issubclass(kind, QuotaExhausted | RateLimited) else None
    return kind(f"{who}: {clean(said)}", retry_after_s=wait, raw=raw, maybe_billed=True)


def message_of(body: str) -> str:
    """The message inside a provider's error body, or the beginning of the body."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return clean(body)
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error.get("code") or error
    return clean(error if isinstance(error, str) else json.dumps(error))


def clean(text: str, limit: int = 300) -> str:
    """One printable line, without anything that looks like a key (providers echo them)."""
    line = " ".join(_SECRET.sub("[key]", "".join(c if c.isprintable() else " " for c in text[: limit * 8])).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
