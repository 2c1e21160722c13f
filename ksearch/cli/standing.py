"""`status --json`: how a run stands, for scripts. The keys are a promise; docs/watch.md describes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ksearch.cli.look import status_of
from ksearch.holders import is_dead
from ksearch.prompts.treelines import grouped
from ksearch.protocol import Holder
from ksearch.run import Run
from ksearch.state import State, working_s
from ksearch.types import NodeStatus
from ksearch.views import holder_of
from ksearch.web.rows import stale


def status_json(run: Run, now: float, dead: Callable[[Holder], bool] = is_dead) -> dict[str, Any]:
    """Strict JSON values; times are seconds since 1970, UTC."""
    state = run.state
    best = state.evaluations.get(state.best_id or "")
    out = [_request(state, id, dead) for id in state.pending]
    return {
        "run": run.id,
        "task": state.context.get("task"),
        "status": status_of(state.ended, state.paused),
        "ended": state.ended,
        "paused": state.paused,
        "paused_until": state.paused_until,
        "events": run.seq,
        "last_event_at": state.last_at,
        "at_work": any(r["holder"] and not r["holder_gone"] and r["deadline"] > now for r in out),
        "best": state.best_id,
        "best_node": holder_of(state, state.best_id) or None if state.best_id else None,
        "speedup": asdict(best.speedup) if best and best.speedup else None,
        "latency_ms": best.latency_ms if best else None,
        "flags": list(best.flags) if best else [],
        "device": (best.device or None) if best else None,
        "evaluations": state.evaluated,
        "attempts": state.attempts,
        "tokens": state.spent.tokens,
        "prompt_tokens": state.prompt_tokens,
        "cached_tokens": state.cached_tokens,
        "usd": state.spent.usd,
        "unpriced_calls": state.unpriced,
        "working_seconds": working_s(state, state.last_at),
        "budget": asdict(state.config.budget),
        "tree": _tree(state),
        "cycles": _cycles(state),
        "requests": out,
    }


def _request(state: State, id: str, dead: Callable[[Holder], bool]) -> dict[str, Any]:
    pending = state.pending[id]
    request, lease = pending.request, pending.lease
    return {
        "id": id,
        "kind": str(request.kind),
        "node_id": request.node_id,
        "holder": lease.holder.name if lease else None,
        "holder_gone": bool(lease and dead(lease.holder)),
        "since": lease.at if lease else None,
        "deadline": lease.deadline if lease else None,
        "lost": list(pending.lost),
    }


def _tree(state: State) -> dict[str, int]:
    groups = grouped(state.tree)
    solved = sum(node.status is NodeStatus.SOLVED for node in groups.closed)
    return {
        "solved": solved,
        "rejected": len(groups.closed) - solved,
        "active": len(groups.active),
        "frontier": len(groups.frontier),
        "waiting": len(groups.waiting),
        "pruned": groups.pruned,
    }


def _cycles(state: State) -> list[dict[str, Any]]:
    k = state.config.stagnation
    return [
        {"node_id": id, "attempts": len(c.attempts), "without_gain": stale(c), "stagnation": k}
        for id, c in state.cycles.items()
    ]
