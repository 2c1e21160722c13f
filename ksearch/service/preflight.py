"""What the budgets allow and what a search is likely to cost, said before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ksearch.config import Loaded, RunConfig
from ksearch.models import Price
from ksearch.models.prices import price_of_call

# A call of a usual search: prompts of about 20,000 characters, a program or plan, and some thinking.
USUAL_IN, USUAL_OUT = 6_000, 4_000
FREE = ("agent", "transcript", "fake")  # nobody is paid by us


def preflight(config: RunConfig) -> str:
    """A line on how many attempts the budgets allow, and one or two on tokens and money where models are called."""
    search = config.search
    budget, reserve = search.budget, search.reserve
    parts = [f"{_count(budget.evaluations, 'evaluation')}, at most {_count(budget.max_attempts, 'attempt')}"]
    if budget.tokens is not None:
        calls = budget.tokens // max(reserve.tokens, 1)
        parts.append(f"{budget.tokens:,} tokens, enough for at least {_count(calls, 'model call')}")
    if budget.usd is not None:
        sure = f", enough for at least {_count(int(budget.usd / reserve.usd), 'model call')}" if reserve.usd else ""
        parts.append(f"{budget.usd:g} USD{sure}")
    if budget.seconds is not None:
        parts.append(f"{budget.seconds / 60:g} minutes of work")
    return "\n".join(["budget: " + "; ".join(parts), *_estimate(config), *_unheld(config)])


def with_reserve(loaded: Loaded) -> Loaded:
    """The settings of a run with a limit in USD: what is set aside for a call is its worst case by the models' prices,
    where these are known and nothing else was said."""
    config = loaded.config
    if config.usd is None or config.reserve_usd is not None:
        return loaded
    worst = {spec: _price(config, spec, config.prompt_tokens, config.reply_tokens) for spec in models(config)}
    known = {spec: price for spec, price in worst.items() if price}
    if not known:
        return loaded
    dearest = max(known, key=lambda spec: known[spec])
    origin = f"worst case of {dearest} by its price"
    config = config.model_copy(update={"reserve_usd": round(known[dearest], 6)})
    return replace(loaded, config=config, origins={**loaded.origins, "reserve_usd": origin})


def models(config: RunConfig) -> Sequence[str]:
    """Planner and writers that cost somebody money, each once."""
    specs = dict.fromkeys((config.planner, *config.all_writers))
    return [spec for spec in specs if spec.partition(":")[0] not in FREE]


def _price(config: RunConfig, spec: str, tokens_in: int, tokens_out: int) -> float | None:
    stated = Price(*config.prices[spec]) if spec in config.prices else None
    return price_of_call(spec, tokens_in, tokens_out, stated, config.base_url)


def _estimate(config: RunConfig) -> list[str]:
    """A rough sum, and the worst case of one call: by it a limit is held."""
    if not models(config):
        return []
    programs, plans = config.evaluations, 1 + config.evaluations // config.stagnation
    writers = config.all_writers
    usual = {spec: _price(config, spec, USUAL_IN, USUAL_OUT) for spec in {config.planner, *writers}}
    calls = [(config.planner, float(plans)), *((spec, programs / len(writers)) for spec in writers)]
    paid = [(spec, count) for spec, count in calls if spec in models(config)]
    tokens = sum(count * (USUAL_IN + USUAL_OUT) for _, count in paid)
    told = (
        f"estimate: {_count(programs, 'program')} and about {_count(plans, 'plan')}: about {tokens / 1e6:.2g} M tokens"
    )
    unknown = dict.fromkeys(spec for spec, _ in paid if usual[spec] is None)
    known = sum(count * (usual[spec] or 0.0) for spec, count in paid)
    if len(unknown) < len({spec for spec, _ in paid}):
        told += f" and {known:.2g} USD"
    told += f", at {USUAL_IN:,} tokens in and {USUAL_OUT:,} out a call (models that think long take more)"
    return [told + (f"; the price of {', '.join(unknown)} is unknown" if unknown else "")]


def _unheld(config: RunConfig) -> list[str]:
    """Models whose calls a limit in USD does not hold back."""
    if config.usd is None or config.reserve_usd:
        return []
    unknown = [spec for spec in models(config) if _price(config, spec, 1, 1) is None]
    if not unknown:
        return []
    return [
        f"note: calls to {', '.join(unknown)} count as 0 USD where no price is reported, so that the limit in USD "
        "does not hold them back: set a limit in tokens, reserve_usd, or prices in the settings"
    ]


def allows_nothing(config: RunConfig) -> str | None:
    """The limit under which not a single attempt can be made, and what to raise."""
    search = config.search
    budget, reserve = search.budget, search.reserve
    if budget.evaluations == 0 or budget.max_attempts == 0:
        return "the budget allows no attempt at all: raise --evaluations (and --attempts) above 0"
    if budget.tokens is not None and budget.tokens < max(reserve.tokens, 1):
        return (
            f"the budget of {budget.tokens:,} tokens does not allow one model call: {reserve.tokens:,} are set aside "
            "for each, the worst case. Raise --tokens, or lower reply_tokens or reserve_tokens in the settings"
        )
    if budget.usd is not None and (budget.usd == 0 or budget.usd < (reserve.usd or 0)):
        held = f": {reserve.usd:.2g} are set aside for each, the worst case" if reserve.usd else ""
        cure = ", or lower reply_tokens or reserve_usd in the settings" if reserve.usd else ""
        return f"the budget of {budget.usd:g} USD does not allow one model call{held}. Raise --usd{cure}"
    if budget.seconds == 0:
        return "the budget allows no time: raise --minutes above 0"
    return None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
