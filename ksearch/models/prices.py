"""What a call to a model would cost, before it is made: by the price that the user states, else by the price list."""

from __future__ import annotations

import importlib.util

from ksearch.models.base import Price
from ksearch.models.command import tells_usd
from ksearch.models.providers import PROVIDERS, taken_apart

# Names of the price list, where they are not ours.
_LISTED = {"openai-chat": "openai", "xai": "x-ai"}


def price_of_call(
    spec: str, tokens_in: int, tokens_out: int, stated: Price | None = None, base_url: str | None = None
) -> float | None:
    """US dollars of one call with nothing read from a cache, and all of it written there where that costs more.

    None: the price is unknown. So it is of commands and of any server that is not the provider's own.
    """
    if stated is not None:
        return stated.usd(tokens_in, tokens_out, 0)
    provider, _, name = spec.partition(":")
    named = taken_apart(name)
    if provider not in PROVIDERS or not named.model:
        return None
    url = named.base_url or base_url
    if url and url.rstrip("/") != PROVIDERS[provider].base_url:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:  # a part of the extra "models": without it no call can be made either
        return None
    ways = [
        Usage(input_tokens=tokens_in, output_tokens=tokens_out),
        Usage(input_tokens=tokens_in, cache_write_tokens=tokens_in, output_tokens=tokens_out),
    ]
    listed = _LISTED.get(provider, provider)
    try:
        found = [calc_price(way, named.model, provider_id=listed).total_price for way in ways]
    except (LookupError, ValueError, AssertionError):
        return None
    return float(max(found))


def told_afterwards(spec: str) -> bool:
    """Whether who answers reports what a call has cost, though nobody knows it before."""
    kind, _, rest = spec.partition(":")
    return kind == "command" and tells_usd(rest)


def never_told(spec: str) -> bool:
    """Whether what a call costs stays unknown, given that `price_of_call` does not know it. Where there is no price
    list, no API can be called either: what is missing is said when the model is opened."""
    if spec.startswith("command:"):
        return not told_afterwards(spec)
    return importlib.util.find_spec("genai_prices") is not None
