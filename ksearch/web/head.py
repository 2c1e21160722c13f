"""The line at the top of every page: how the run stands, what is spent, who is at work, whether all is well."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ksearch.holders import is_dead
from ksearch.types import NodeStatus
from ksearch.web import rows
from ksearch.web.projection import Projection

if TYPE_CHECKING:
    from ksearch.web.reader import RunReader

_CONTEXT = 40  # entries


def head(reader: RunReader, seen: Projection) -> dict[str, Any]:
    state, now = seen.state, time.time()
    number = seen.number_of(state.best_id or "")
    best_node = seen.tries[number]["node"] if number is not None else None
    return {
        "now": now, "started_at": seen.started_at, "last_at": seen.last_at, "total": reader.total,
        "error": reader.error, "notes": list(reader.store.notes), "readonly": reader.store.readonly,
        "ended": state.ended, "paused": state.paused, "stopping": state.stopping, "exhausted": state.exhausted,
        "paused_until": state.paused_until,
        "best": rows.best_row(state, best_node), "budgets": rows.budgets(state, now), "out": rows.out(state),
        "at_work": any(p.lease and p.lease.deadline > now and not is_dead(p.lease.holder)
                       for p in state.pending.values()),
        "cycles": [
            {"node": id, "attempts": len(c.attempts), "stale": rows.stale(c), "best": c.best_id}
            for id, c in list(state.cycles.items())[:100]
        ],
        "rules": rules_of(seen), "mix": seen.mix, "unpriced": state.unpriced, "plans_due": len(state.plans_due),
        "tree": _counts(seen),
        "counts": {"programs": len(seen.tries), "steps": len(seen.steps), "calls": len(seen.calls),
                   "spans": len(seen.spans), "remarks": len(seen.remarks)},
        "context": {rows.cut(k, 80): rows.cut(v, 2000) for k, v in list(state.context.items())[:_CONTEXT]},
        "model": _model(seen),
    }  # fmt: skip


def rules_of(seen: Projection) -> dict[str, Any]:
    return rows.rules(seen.state)


def _counts(seen: Projection) -> dict[str, int]:
    tree = seen.state.tree
    found = {status.value: 0 for status in NodeStatus}
    frontier = 0
    for node in tree.values():
        if node.parent_id is None:
            continue
        found[node.status.value] += 1
        frontier += node.status is NodeStatus.OPEN and tree[node.parent_id].status is NodeStatus.SOLVED
    return {**found, "frontier": frontier, "all": len(tree) - 1}


def _model(seen: Projection) -> dict[str, Any]:
    """The last answered call, and what went wrong since."""
    last = seen.calls[-1] if seen.calls else None
    lost = [reason for p in seen.state.pending.values() for reason in p.lost[-1:]]
    return {
        "name": last["model"] if last else None, "at": last["at"] if last else None,
        "finish": last["finish"] if last else None, "lost": rows.cut(lost[-1]) if lost else None,
    }  # fmt: skip
