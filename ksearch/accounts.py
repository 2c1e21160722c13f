"""The books of money: what is set aside, what a reply settles, and what each of several writers cost and brought.

Only `fold` calls these, with what the log says. Everything is booked once: a reservation becomes a price, or, for
want of a reply, counts as spent until the reply comes after all.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ksearch import events as ev
from ksearch.protocol import Cost, Request
from ksearch.state import Cycle, State, Tally, evolve


def settle(state: State, e: ev.Received) -> State:
    """A reply is here: its price takes the place of what was set aside. An unknown price is taken to be that."""
    if e.request_id not in state.reserved:
        state = _give_back(state, e.request_id)
    held = state.reserved.get(e.request_id, Cost())
    usd = e.cost.usd if e.cost.usd is not None else held.usd or 0.0
    state = _charge(state, e.request_id, e.cost.tokens, usd, unpriced=e.cost.usd is None)
    if e.usage and e.usage.tokens_in is not None and e.usage.tokens_cached is not None:
        read, cached = state.prompt_tokens + e.usage.tokens_in, state.cached_tokens + e.usage.tokens_cached
        state = evolve(state, prompt_tokens=read, cached_tokens=cached)
    return _drop_reserved(state, e.request_id)


def spend_reserved(state: State, request_id: str) -> State:
    """A reservation that no reply settled counts as spent: the provider may have charged for it."""
    if request_id not in state.reserved:
        return state
    held = state.reserved[request_id]
    lapsed = (*state.lapsed.get(request_id, ()), held)
    if held.tokens or held.usd:
        state = evolve(state, lapsed={**state.lapsed, request_id: lapsed})
    return _drop_reserved(_charge(state, request_id, held.tokens, held.usd or 0.0), request_id)


def free_reserved(state: State, request_id: str) -> State:
    """Its holder knows that nothing was spent. If another's late reply has settled this very reservation, it is the
    other's that is still booked and has to go."""
    return _drop_reserved(state if request_id in state.reserved else _give_back(state, request_id), request_id)


def _drop_reserved(state: State, request_id: str) -> State:
    return evolve(state, reserved={k: c for k, c in state.reserved.items() if k != request_id})


def _give_back(state: State, request_id: str) -> State:
    """The reply came after all: its price takes the place of the reservation, which is held again."""
    *others, held = state.lapsed.get(request_id, (Cost(),))
    state = _charge(state, request_id, -held.tokens, -(held.usd or 0.0))
    lapsed = {**state.lapsed, request_id: tuple(others)}
    state = evolve(state, lapsed={k: costs for k, costs in lapsed.items() if costs})
    return evolve(state, reserved={**state.reserved, request_id: held})


def _charge(state: State, request_id: str, tokens: int, usd: float, *, unpriced: bool = False) -> State:
    spent = Cost(state.spent.tokens + tokens, max(0.0, (state.spent.usd or 0.0) + usd))
    state = evolve(state, spent=spent, unpriced=state.unpriced + unpriced)
    name = state.written_by.get(request_id)
    if name is None:
        return state
    tally = state.writers[name]
    paid = max(0.0, tally.usd + usd)
    return _put(state, name, replace(tally, tokens=tally.tokens + tokens, usd=paid, unpriced=tally.unpriced + unpriced))


# --- several writers ----------------------------------------------------------------------------------------------


def enter_writer(state: State, request: Request) -> State:
    """A program is asked of one of several writers: what the request will cost is on its account."""
    if not request.writer:
        return state
    tally = state.writers.get(request.writer, Tally())
    state = evolve(state, written_by={**state.written_by, request.id: request.writer})
    return _put(state, request.writer, replace(tally, asked=tally.asked + 1))


def credit_writer(state: State, cycle: Cycle, judged: ev.Judged) -> State:
    """An attempt is judged: what it added to its action's gain is to its writer's credit."""
    name = cycle.attempts[judged.attempt].writer
    if not name:
        return state
    tally, gain = state.writers[name], added(cycle, judged)
    gains = tally.gains + (gain > 0)
    return _put(state, name, replace(tally, judged=tally.judged + 1, gains=gains, log_gain=tally.log_gain + gain))


def added(cycle: Cycle, judged: ev.Judged) -> float:
    """By how much an attempt surely raised its action's gain over the parent's program: a logarithm, at least 0."""
    before = (a.judged for a in cycle.attempts[: judged.attempt])
    return max(0.0, _gain(judged) - max((_gain(j) for j in before if j), default=0.0))


def _gain(judged: ev.Judged) -> float:
    """0 for what is no improvement, or not surely ahead of the parent."""
    ahead = judged.improved and judged.beats_parent and judged.versus_parent
    return max(0.0, math.log(ahead.value)) if ahead else 0.0


def _put(state: State, name: str, tally: Tally) -> State:
    return evolve(state, writers={**state.writers, name: tally})
