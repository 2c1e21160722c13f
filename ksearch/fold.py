"""The books: `apply(state, event)` is the only place where state changes, and `fold(events)` is resume.

Total and deterministic: no clock, no randomness, no policy. What to do next is decided in `search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.accounts import credit_writer, enter_writer, free_reserved, settle, spend_reserved
from ksearch.protocol import Kind, Request
from ksearch.state import CLOSED, EMPTY, Attempt, Cycle, Pending, State, evolve, working_s
from ksearch.types import Node, NodeStatus, Origin, Update


def apply(state: State, event: ev.Event) -> State:
    """The state after an event.

    Raises:
        KeyError: the event speaks of a request or cycle that never was: the log is not one of ours.
    """
    return _HANDLERS[type(event)](_clock(state, event.at), event)


def fold(events: Iterable[ev.Event], state: State | None = None) -> State:
    """Rebuild a state from its log (resume), or carry one on with what is new in it."""
    state = state or State()
    for event in events:
        state = apply(state, event)
    return state


def _clock(state: State, at: float) -> State:
    return evolve(state, worked_s=working_s(state, at), last_at=max(state.last_at, at))


# --- requests ----------------------------------------------------------------------------------------------------


def _run_started(state: State, e: ev.RunStarted) -> State:
    return evolve(state, config=e.config, context=e.context)


def _asked(state: State, e: ev.Asked) -> State:
    pending = {**state.pending, e.request.id: Pending(e.request, state.tree)}
    state = evolve(state, asked=state.asked + 1, pending=pending)
    if e.request.kind is not Kind.WRITE:
        return state
    return _attempt(enter_writer(state, e.request), e.request.node_id, e.request.id, None, writer=e.request.writer)


def _attempt(
    state: State, node_id: str, request_id: str, program_id: str | None, *, single: bool = False, writer: str = ""
) -> State:
    """A new attempt: it joins the round at hand while that has room, and opens the cycle if it is the first."""
    node = state.tree[node_id]
    cycle = state.cycles.get(node_id) or Cycle(state.tree[trees.parent_of(node)].program_id, single=single)
    size, last = len(cycle.round), cycle.attempts[-1].round if cycle.attempts else 0
    attempt = Attempt(request_id, last if size < state.config.width else last + 1, program_id, writer=writer)
    cycle = replace(cycle, attempts=(*cycle.attempts, attempt))
    tree = trees.put(state.tree, replace(node, status=NodeStatus.ACTIVE, pinned=False))
    return evolve(state, tree=tree, cycles={**state.cycles, node_id: cycle}, attempts=state.attempts + 1)


def _leased(state: State, e: ev.Leased) -> State:
    state = spend_reserved(state, e.request_id)  # of an earlier holder who never answered
    state = evolve(state, reserved={**state.reserved, e.request_id: e.reserved})
    return _put_pending(state, replace(state.pending[e.request_id], lease=e))


def _expired(state: State, e: ev.Expired) -> State:
    pending = state.pending[e.request_id]
    late = pending.lease is not None and pending.lease.deadline < e.at  # a driver that was killed does not count
    lost = (*pending.lost, e.reason) if late else pending.lost
    return _put_pending(state, replace(pending, lease=None, lost=lost))


def _received(state: State, e: ev.Received) -> State:
    state = settle(state, e)
    pending = state.pending.get(e.request_id)
    return _put_pending(state, replace(pending, received=pending.received or e)) if pending else state


def _put_pending(state: State, pending: Pending) -> State:
    return evolve(state, pending={**state.pending, pending.request.id: pending})


def _answered(state: State, request_id: str) -> tuple[State, Request]:
    request = state.pending[request_id].request
    state = spend_reserved(state, request_id)
    return evolve(state, pending={k: p for k, p in state.pending.items() if k != request_id}), request


# --- replies -----------------------------------------------------------------------------------------------------


def _planned(state: State, e: ev.Planned) -> State:
    state, request = _answered(state, e.request_id)
    state = evolve(state, tree=trees.edit_all(state.tree, e.edits))
    return _plan_seen(state, request, "the frontier is empty and the planner has nothing to add")


def _plan_refused(state: State, e: ev.PlanRefused) -> State:
    state = spend_reserved(state, e.request_id)
    pending = state.pending[e.request_id]
    return _put_pending(state, replace(pending, lease=None, received=None, refusals=(*pending.refusals, e.reason)))


def _plan_abandoned(state: State, e: ev.PlanAbandoned) -> State:
    state, request = _answered(state, e.request_id)
    state = evolve(state, withdrawn=state.withdrawn | {e.request_id})
    return _plan_seen(state, request, f"planner_failed: {e.reason}")


def _plan_seen(state: State, request: Request, exhausted: str) -> State:
    if request.why == EMPTY and not (state.cycles or state.plans_due or trees.frontier(state.tree)):
        return evolve(state, exhausted=exhausted)
    return evolve(state, plans_due=tuple(d for d in state.plans_due if d != (request.node_id, request.why)))


def _written(state: State, e: ev.Written) -> State:
    state, request = _answered(state, e.request_id)
    return _set_attempt(state, request.node_id, e.request_id, program_id=e.program_id)


def _write_failed(state: State, e: ev.WriteFailed) -> State:
    state, request = _answered(state, e.request_id)
    found = {"program_id": e.program_id, "verdict": e.verdict, "reason": e.reason}
    return _set_attempt(state, request.node_id, e.request_id, **found)


def _set_attempt(state: State, node_id: str, request_id: str, **found: Any) -> State:
    cycle = state.cycles[node_id]
    attempts = tuple(replace(a, **found) if a.request_id == request_id else a for a in cycle.attempts)
    return evolve(state, cycles={**state.cycles, node_id: replace(cycle, attempts=attempts)})


def _evaluated(state: State, e: ev.Evaluated) -> State:
    state, request = _answered(state, e.request_id)
    done = e.evaluation
    cycle = state.cycles[request.node_id]
    attempts = tuple(
        replace(a, verdict=done.verdict, reason=done.reason)
        if a.program_id == done.program_id and a.verdict is None
        else a
        for a in cycle.attempts
    )
    return evolve(
        state,
        cycles={**state.cycles, request.node_id: replace(cycle, attempts=attempts)},
        evaluations={**state.evaluations, done.program_id: done},
        evaluated=state.evaluated + 1,
    )


def _work_lost(state: State, e: ev.WorkLost) -> State:
    if not e.billed:
        state = free_reserved(state, e.request_id)
    state = spend_reserved(state, e.request_id)
    pending = state.pending[e.request_id]
    return _put_pending(state, replace(pending, lease=None, received=None, lost=(*pending.lost, e.reason)))


def _ignored(state: State, e: ev.Ignored) -> State:
    return evolve(state, withdrawn=state.withdrawn - {e.request_id})


# --- decisions ---------------------------------------------------------------------------------------------------


def _judged(state: State, e: ev.Judged) -> State:
    cycle = state.cycles[e.node_id]
    state = credit_writer(state, cycle, e)
    attempts = tuple(replace(a, judged=e) if i == e.attempt else a for i, a in enumerate(cycle.attempts))
    best_id = attempts[e.attempt].program_id if e.new_best else state.best_id
    cycles = {**state.cycles, e.node_id: replace(cycle, attempts=attempts)}
    return evolve(state, cycles=cycles, best_id=best_id)


def _cycle_closed(state: State, e: ev.CycleClosed) -> State:
    node, cycle = state.tree[e.node_id], state.cycles[e.node_id]
    closed = replace(
        node,
        status=NodeStatus.OPEN if e.unfinished else NodeStatus.SOLVED if e.program_id else NodeStatus.REJECTED,
        program_id=e.program_id,
        speedup=e.speedup,
        gain=e.gain,
        attempts=len(cycle.attempts),
        closed_because=e.reason,
    )
    tree = trees.put_status(trees.put(state.tree, closed), e.pruned, NodeStatus.PRUNED)
    gone = {k for k, p in state.pending.items() if p.request.node_id == e.node_id and p.request.kind is not Kind.PLAN}
    for request_id in sorted(gone):
        state, _ = _answered(state, request_id)
    return evolve(
        state,
        tree=tree,
        cycles={k: c for k, c in state.cycles.items() if k != e.node_id},
        plans_due=state.plans_due if e.unfinished else (*state.plans_due, (e.node_id, CLOSED)),
        withdrawn=state.withdrawn | gone,
    )


def _submitted(state: State, e: ev.Submitted) -> State:
    if e.created:
        state = evolve(state, tree=trees.insert(state.tree, e.created))
    state = evolve(state, ended=None, exhausted=None)
    return _attempt(state, e.node_id, "", e.program_id, single=e.created is not None)


def _paused(state: State, e: ev.Paused) -> State:
    return evolve(state, paused=e.reason, paused_until=e.until)


def _ended(state: State, e: ev.Ended) -> State:
    return evolve(state, ended=e.reason)


# --- commands ----------------------------------------------------------------------------------------------------


def _commanded(state: State, e: ev.Commanded) -> State:
    match e.command:
        case ev.Pause(reason):
            return evolve(state, paused=reason or f"by {e.author}", paused_until=None)
        case ev.Resume():
            fresh = {k: replace(p, lost=()) for k, p in state.pending.items()}
            return _reopen(evolve(state, pending=fresh, paused=None, paused_until=None, stopping=None))
        case ev.Stop(reason):
            return evolve(state, stopping=reason or f"by {e.author}", paused=None, paused_until=None)
        case ev.SetBudget(budget):
            return _reopen(evolve(state, config=replace(state.config, budget=budget)))
        case ev.SetParallel(max_active, width):
            return evolve(state, config=replace(state.config, max_active=max_active, width=width))
        case ev.Pin(node_id, pinned):
            return evolve(state, tree=trees.put(state.tree, replace(state.tree[node_id], pinned=pinned)))
        case ev.Boost(node_id, value):
            return evolve(state, tree=trees.update(state.tree, Update(node_id, value=value)))
        case ev.PruneNode(node_id):
            return evolve(state, tree=trees.prune(state.tree, node_id))
        case ev.AddAction(parent_id, action, value, id):
            node = Node(id, parent_id, action, value, origin=Origin.PERSON)
            return _reopen(evolve(state, tree=trees.insert(state.tree, node)))
    return state  # Note and Review say something about the run; they change nothing in it


def _reopen(state: State) -> State:
    return evolve(state, ended=None, exhausted=None)


_HANDLERS: Mapping[type[ev.Event], Callable[[State, Any], State]] = {
    ev.RunStarted: _run_started,
    ev.Asked: _asked,
    ev.Leased: _leased,
    ev.Expired: _expired,
    ev.Received: _received,
    ev.Planned: _planned,
    ev.PlanRefused: _plan_refused,
    ev.PlanAbandoned: _plan_abandoned,
    ev.Written: _written,
    ev.WriteFailed: _write_failed,
    ev.Evaluated: _evaluated,
    ev.WorkLost: _work_lost,
    ev.Ignored: _ignored,
    ev.Judged: _judged,
    ev.CycleClosed: _cycle_closed,
    ev.Submitted: _submitted,
    ev.Paused: _paused,
    ev.Ended: _ended,
    ev.Commanded: _commanded,
}
