"""What a run may still spend. Everything is reserved before it is spent, so that nothing overshoots.

A program that is being written or waits to be measured holds one evaluation; a model call holds
`config.reserve` until its reply settles it.
"""

from __future__ import annotations

from ksearch import tree as trees
from ksearch.protocol import Kind
from ksearch.state import Cycle, Pending, State, working_s


def evaluations_committed(state: State) -> int:
    """Measured, being measured, or sure to be measured once written."""
    return state.evaluated + sum(len(c.unresolved) for c in state.cycles.values())


def tokens_committed(state: State) -> int:
    return state.spent.tokens + sum(c.tokens for c in state.reserved.values())


def usd_committed(state: State) -> float:
    return (state.spent.usd or 0.0) + sum(c.usd or 0.0 for c in state.reserved.values())


def out_of_work(state: State) -> str | None:
    """The limit that lets no further program be written, if there is one."""
    budget = state.config.budget
    if evaluations_committed(state) >= budget.evaluations:
        return "budget: evaluations"
    return "budget: attempts" if state.attempts >= budget.max_attempts else None


def out_of_calls(state: State, now: float) -> str | None:
    """The limit that lets no further model call be made, if there is one."""
    budget, reserve = state.config.budget, state.config.reserve
    if budget.tokens is not None and tokens_committed(state) + max(reserve.tokens, 1) > budget.tokens:
        return "budget: tokens"
    if budget.usd is not None:
        committed = usd_committed(state)
        if committed >= budget.usd or committed + (reserve.usd or 0.0) > budget.usd:
            return "budget: usd"
    if budget.seconds is not None and working_s(state, now) >= budget.seconds:
        return "budget: seconds"
    return None


def spent_out(state: State, now: float) -> str | None:
    return out_of_work(state) or out_of_calls(state, now)


def in_motion(state: State, now: float) -> bool:
    """Whether any open cycle still waits for something that can come, were it what a plan leaves of its reservation."""
    if not state.stopping and any(p.lease for p in state.pending.values()):
        return True
    return any(_in_motion(state, node_id, cycle, now) for node_id, cycle in state.cycles.items())


def _in_motion(state: State, node_id: str, cycle: Cycle, now: float) -> bool:
    out = [p for p in state.pending.values() if p.request.node_id == node_id and p.request.kind is not Kind.PLAN]
    if any(p.lease for p in out):
        return True
    if not cycle.unresolved:
        return False
    return any(a.program_id for a in cycle.unresolved) or any(can_go_on(state, p, now) for p in out)


def can_go_on(state: State, pending: Pending, now: float) -> bool:
    """Work that nobody holds may be handed out again: measuring costs no call, nor does a reply that is stored."""
    free = pending.request.kind is Kind.EVALUATE or pending.received is not None
    limit = spent_out if pending.request.kind is Kind.PLAN else out_of_calls
    return pending.lease is None and (free or not (state.stopping or limit(state, now)))


def finished(state: State, now: float) -> str | None:
    """Why there is nothing left to do, or None while there is."""
    if state.paused or state.cycles or any(p.lease for p in state.pending.values()):
        return None
    if state.stopping:
        return f"stopped: {state.stopping}"
    if why := spent_out(state, now):
        return why
    idle = not state.plans_due and not state.pending and not trees.frontier(state.tree)
    return state.exhausted if idle else None
