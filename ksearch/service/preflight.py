"""What the budgets allow, said before anything is spent."""

from __future__ import annotations

from ksearch.config import RunConfig


def preflight(config: RunConfig) -> str:
    """One line: how many attempts the budgets allow, and which limit binds first."""
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
    return "budget: " + "; ".join(parts)


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
        return f"the budget of {budget.usd:g} USD does not allow one model call: raise --usd"
    if budget.seconds == 0:
        return "the budget allows no time: raise --minutes above 0"
    return None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
