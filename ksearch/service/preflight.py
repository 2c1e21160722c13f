"""What the budgets allow and what a search is likely to cost, said before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from ksearch.config import Loaded, RunConfig
from ksearch.models import Price
from ksearch.models.prices import never_told, price_of_call, told_afterwards

# A call of a usual search: prompts of about 20,000 characters, a program or plan, and some thinking.
USUAL_IN, USUAL_OUT = 6_000, 4_000
FREE = ("agent", "transcript", "fake")  # nobody is paid by us


def preflight(config: RunConfig) -> str:
    """A line on how many attempts the budgets allow, and one or two on tokens and money where models are called."""
    config = held(config)
    search = config.search
    budget, reserve = search.budget, search.reserve
    parts = [f"{_count(budget.evaluations, 'evaluation')}, at most {_count(budget.max_attempts, 'attempt')}"]
    if budget.tokens is not None:
        calls = budget.tokens // reserve.tokens if reserve.tokens else None
        parts.append(f"{budget.tokens:,} tokens" + (f", enough for at least {calls} model calls" if calls else ""))
    if budget.usd is not None:
        sure = f", enough for at least {int(budget.usd / reserve.usd)} model calls" if reserve.usd else ""
        parts.append(f"{budget.usd:g} USD{sure}")
    if budget.seconds is not None:
        parts.append(f"{budget.seconds / 60:g} minutes of work")
    return "\n".join(["budget: " + "; ".join(parts), *expected(config)])


def objection(config: RunConfig) -> str | None:
    """Why a search with these limits must not begin, with the cure: it could do nothing, or spend beyond a limit."""
    config = held(config)
    search = config.search
    budget, reserve = search.budget, search.reserve
    if budget.evaluations == 0 or budget.max_attempts == 0:
        return "the budget allows no attempt: raise --evaluations or --attempts above 0"
    if budget.tokens is not None and budget.tokens < max(1, reserve.tokens):
        return (
            f"the budget of {budget.tokens:,} tokens does not allow one model call: {reserve.tokens:,} are set aside "
            "for each, the worst case. Raise --tokens, or lower reply_tokens or reserve_tokens in the settings"
        )
    if budget.usd is not None and (budget.usd == 0 or budget.usd < (reserve.usd or 0)):
        aside = f": {reserve.usd:.2g} are set aside for each, the worst case" if reserve.usd else ""
        cure = ", or lower reply_tokens or reserve_usd in the settings" if reserve.usd else ""
        return f"the budget of {budget.usd:g} USD does not allow one model call{aside}. Raise --usd{cure}"
    if budget.seconds == 0:
        return "the budget allows no time: raise --minutes above 0"
    if never := [spec for spec in _unheld(config) if never_told(spec)]:
        return (
            f"a limit in USD cannot hold {', '.join(never)}: the price is unknown, which is not free. State it by "
            "`prices` in the settings (0 where nothing is paid), or set `reserve_usd`, the most that a call costs, or "
            "limit --tokens instead"
        )
    return None


def held(config: RunConfig) -> RunConfig:
    """With a limit in USD: what is set aside for a call is its worst case by the dearest model's price, where any is
    known and nothing else was said."""
    dearest = _dearest(config)
    return config.model_copy(update={"reserve_usd": dearest[1]}) if dearest else config


def with_reserve(loaded: Loaded) -> Loaded:
    """The same, and where it comes from."""
    if (dearest := _dearest(loaded.config)) is None:
        return loaded
    origin = f"worst case of {dearest[0]} by its price"
    return replace(loaded, config=held(loaded.config), origins={**loaded.origins, "reserve_usd": origin})


def _dearest(config: RunConfig) -> tuple[str, float] | None:
    """The model whose longest call costs the most, and what; None where nothing has to be set aside, or can be."""
    if config.usd is None or config.reserve_usd is not None:
        return None
    worst = {spec: _price(config, spec, config.prompt_tokens, config.reply_tokens) for spec in _paid(config)}
    known = {spec: price for spec, price in worst.items() if price}
    if not known:
        return None
    spec = max(known, key=lambda spec: known[spec])
    return spec, math.ceil(known[spec] * 1e6) / 1e6


def _paid(config: RunConfig) -> list[str]:
    """Planner and writers that cost somebody money, each once."""
    specs = dict.fromkeys((config.planner, *config.all_writers))
    return [spec for spec in specs if spec.partition(":")[0] not in FREE]


def _price(config: RunConfig, spec: str, tokens_in: int, tokens_out: int) -> float | None:
    stated = Price(*config.prices[spec]) if spec in config.prices else None
    return price_of_call(spec, tokens_in, tokens_out, stated, config.base_url)


# --- what is to be expected ---------------------------------------------------------------------------------------


def expected(config: RunConfig, searches: int = 1) -> list[str]:
    """A rough sum of tokens and money, and what a limit in money does not hold; nothing where no model is called.

    Args:
        searches: tasks that share the budget.
    """
    config = held(config)
    if not _paid(config):
        return []
    programs = min(config.evaluations, config.search.budget.max_attempts)
    plans = searches + programs // config.stagnation
    tokens_in, tokens_out = min(USUAL_IN, config.prompt_tokens), min(USUAL_OUT, config.reply_tokens)
    calls = _calls(config, programs, plans)
    prices = {spec: _price(config, spec, tokens_in, tokens_out) for spec in calls}
    tokens = calls.total() * (tokens_in + tokens_out)
    usd = sum(calls[spec] * (price or 0.0) for spec, price in prices.items())
    unknown = [spec for spec, price in prices.items() if price is None]
    told = f"estimate: {_count(programs, 'program')} and about {_count(plans, 'plan')}: "
    told += f"about {_rough(tokens / 1e6)} M tokens" + (f" and {_rough(usd)} USD" if len(unknown) < len(prices) else "")
    told += f", at {tokens_in:,} tokens in and {tokens_out:,} out a call (models that think long take more)"
    told += f"; the price of {', '.join(unknown)} is unknown" if unknown else ""
    limits = [f"{config.usd:g} USD"] if config.usd is not None and config.usd < usd else []
    limits += [f"{config.tokens:,} tokens"] if config.tokens is not None and config.tokens < tokens else []
    told += f"; the limit of {' and of '.join(limits)} is reached before that" if limits else ""
    return [told, *_warning(config)]


def _calls(config: RunConfig, programs: int, plans: int) -> Counter[str]:
    """Calls of each model that somebody pays for; of several writers each is asked as often."""
    calls = Counter[str]()
    paid, writers = _paid(config), config.all_writers
    shares = [(config.planner, float(plans)), *((spec, programs / len(writers)) for spec in writers)]
    for spec, count in shares:
        if spec in paid:
            calls[spec] += count  # type: ignore[assignment]  # parts of calls, on average
    return calls


def _warning(config: RunConfig) -> list[str]:
    """On calls whose cost is known only afterwards."""
    late = [spec for spec in _unheld(config) if told_afterwards(spec)]
    if not late:
        return []
    return [
        f"note: what a call to {', '.join(late)} costs is known only afterwards: the limit in USD may be exceeded by "
        "the calls that are out when it is reached, and a reply without a price counts as 0. Set reserve_usd, the most "
        "that a call costs, or a limit in tokens"
    ]


def _unheld(config: RunConfig) -> list[str]:
    """Models for whose calls nothing is set aside, although there is a limit in USD: nobody knows their price."""
    if config.usd is None or config.reserve_usd is not None:
        return []
    return [spec for spec in _paid(config) if _price(config, spec, 1, 1) is None]


def _rough(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
