"""What the pages are shown of a node, a program, a run: plain JSON values, short names, units in the comments."""

from __future__ import annotations

import math
from typing import Any

from ksearch import events as ev
from ksearch.budget import evaluations_committed, tokens_committed, usd_committed
from ksearch.state import Cycle, State, working_s
from ksearch.types import Evaluation, Node, Ratio, Tree, Verdict

TEXT = 600  # characters of a reason or note in a list; the whole is in the object's own answer
LONG = 20_000


def cut(text: str, limit: int = TEXT) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def triple(ratio: Ratio | None) -> list[float] | None:
    """[value, low, high] of a ratio of times."""
    return None if ratio is None else [ratio.value, ratio.low, ratio.high]


# --- nodes -------------------------------------------------------------------------------------------------------


def node_row(state: State, node_id: str) -> dict[str, Any]:
    """One node, with what its open cycle has reached so far."""
    node = state.tree[node_id]
    row = fixed_row(node)
    cycle = state.cycles.get(node_id)
    if cycle:
        row |= _at_work(state, cycle)
    row["limit"] = 3 * state.config.stagnation
    return row


def fixed_row(node: Node) -> dict[str, Any]:
    action = node.action
    return {
        "id": node.id, "parent": node.parent_id, "title": cut(action.title, 300), "why": cut(action.rationale, LONG),
        "difficulty": action.difficulty, "predicted": action.predicted_speedup, "workloads": list(action.workloads),
        "enabling": action.enabling, "v": node.value, "status": node.status.value, "origin": node.origin.value,
        "pinned": node.pinned, "notes": cut(node.notes, LONG), "program": node.program_id,
        "speedup": triple(node.speedup), "gain": triple(node.gain), "attempts": node.attempts,
        "closed": cut(node.closed_because),
    }  # fmt: skip


def _at_work(state: State, cycle: Cycle) -> dict[str, Any]:
    found: dict[str, Any] = {"attempts": len(cycle.attempts), "stale": stale(cycle), "base": cycle.base_id}
    if cycle.best_id:
        found["program"] = cycle.best_id
        found["speedup"] = triple(state.evaluations[cycle.best_id].speedup)
        judged = next(a.judged for a in cycle.attempts if a.program_id == cycle.best_id and a.judged)
        found["gain"] = triple(judged.versus_parent)
    return found


def stale(cycle: Cycle) -> int:
    """Judged attempts since the last improvement."""
    count = 0
    for attempt in reversed([a for a in cycle.attempts if a.verdict is not None]):
        if attempt.judged and attempt.judged.improved:
            break
        count += 1
    return count


# --- programs ----------------------------------------------------------------------------------------------------


def workload_speedups(done: Evaluation) -> list[float]:
    return [w.speedup.value for w in done.workloads if w.speedup]


def roofline(done: Evaluation) -> float | None:
    """Bound / measured, geometric mean over the workloads that have a bound: 1 is as fast as the machine allows."""
    ratios = [w.floor_ms / w.latency_ms for w in done.workloads if w.floor_ms and w.latency_ms]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def evaluated_row(done: Evaluation) -> dict[str, Any]:
    speedups = workload_speedups(done)
    return {
        "verdict": done.verdict.value, "reason": cut(done.reason), "stage": done.stage, "ms": done.latency_ms,
        "speedup": triple(done.speedup), "worst": min(speedups, default=None), "roof": roofline(done),
        "flags": [cut(f) for f in done.flags[:20]], "confirmed": done.confirmed, "seconds": done.seconds,
        "device": done.device, "fails": [w.workload for w in done.workloads if w.verdict is not Verdict.PASSED][:5],
    }  # fmt: skip


def evaluation_detail(done: Evaluation) -> dict[str, Any]:
    """Everything measured, workload by workload."""
    return evaluated_row(done) | {
        "reason": done.reason, "log": done.log, "record": done.record,
        "against": {id: triple(r) for id, r in done.against.items()},
        "workloads": [
            {
                "name": w.workload, "verdict": w.verdict.value, "reason": cut(w.reason, LONG), "ms": w.latency_ms,
                "baseline_ms": w.baseline_ms, "floor_ms": w.floor_ms, "speedup": triple(w.speedup),
                "max_abs_error": w.max_abs_error, "max_rel_error": w.max_rel_error,
                "against": {id: triple(r) for id, r in w.against.items()},
            }
            for w in done.workloads
        ],
    }  # fmt: skip


# --- the run -----------------------------------------------------------------------------------------------------


def budgets(state: State, now: float) -> list[dict[str, Any]]:
    """Each limit with what is spent and what is set aside on top of it."""
    budget, spent = state.config.budget, state.spent
    usd = spent.usd or 0.0
    return [
        _gauge("evaluations", "", state.evaluated, evaluations_committed(state), budget.evaluations),
        _gauge("attempts", "", state.attempts, state.attempts, budget.max_attempts),
        _gauge("tokens", "", spent.tokens, tokens_committed(state), budget.tokens),
        _gauge("money", "$", usd, usd_committed(state), budget.usd),
        _gauge("working time", "s", state.worked_s, working_s(state, now), budget.seconds),
    ]


def _gauge(name: str, unit: str, used: float, committed: float, limit: float | None) -> dict[str, Any]:
    return {"name": name, "unit": unit, "used": used, "committed": committed, "limit": limit}


def out(state: State) -> list[dict[str, Any]]:
    """Requests without an answer, with who holds them."""
    return [
        {
            "request": p.request.id, "kind": p.request.kind.value, "node": p.request.node_id,
            "program": p.request.program_id, "holder": cut(p.lease.holder.name, 80) if p.lease else None,
            "since": p.lease.at if p.lease else None, "deadline": p.lease.deadline if p.lease else None,
            "lost": [cut(reason) for reason in p.lost[-3:]], "refused": [cut(reason) for reason in p.refusals[-3:]],
        }
        for p in list(state.pending.values())[:200]
    ]  # fmt: skip


def rules(state: State) -> dict[str, Any]:
    config, budget = state.config, state.config.budget
    return {
        "stagnation": config.stagnation, "max_new_nodes": config.max_new_nodes, "max_active": config.max_active,
        "max_difficulty": config.max_difficulty, "width": config.width, "max_retries": config.max_retries,
        "budget": {
            "evaluations": budget.evaluations, "attempts": budget.attempts, "tokens": budget.tokens,
            "usd": budget.usd, "seconds": budget.seconds,
        },
    }  # fmt: skip


def best_row(state: State, node_id: str | None) -> dict[str, Any] | None:
    done = state.evaluations.get(state.best_id or "")
    if done is None:
        return None
    return {"program": state.best_id, "node": node_id, **evaluated_row(done)}


# --- edits of the tree -------------------------------------------------------------------------------------------

_SHOWN = ("value", "status", "pinned", "notes", "program_id", "speedup", "gain", "attempts", "closed_because")


def changes(before: Tree, after: Tree, limit: int = 200) -> list[dict[str, Any]]:
    """What an event did to the tree, node by node: [{id, title, before: {...} or null, after: {...}}]."""
    if before is after:
        return []
    found = []
    for id, node in after.items():
        old = before.get(id)
        if old is node:
            continue
        row = {"id": id, "title": cut(node.action.title, 120)}
        if old is None:
            found.append({**row, "before": None, "after": _facts(node)})
        elif differing := _differing(old, node):
            found.append({**row, "before": differing[0], "after": differing[1]})
        if len(found) == limit:
            break
    return found


def changed_ids(before: Tree, after: Tree) -> list[str]:
    return [] if before is after else [id for id, node in after.items() if before.get(id) is not node]


def _facts(node: Node) -> dict[str, Any]:
    return {
        "parent": node.parent_id, "V": node.value, "status": node.status.value, "difficulty": node.action.difficulty,
        "predicted": node.action.predicted_speedup, "why": cut(node.action.rationale),
    }  # fmt: skip


def _differing(old: Node, new: Node) -> tuple[dict[str, Any], dict[str, Any]] | None:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    pairs = [(n, getattr(old, n), getattr(new, n)) for n in _SHOWN]
    for name, was, now in [*pairs, ("difficulty", old.action.difficulty, new.action.difficulty)]:
        if was != now:
            before[name], after[name] = _plain(was), _plain(now)
    return (before, after) if before else None


def _plain(value: Any) -> Any:
    if isinstance(value, Ratio):
        return triple(value)
    return cut(value) if isinstance(value, str) else value


def command_kind(command: ev.Command) -> str:
    return {
        ev.Pause: "pause", ev.Resume: "resume", ev.Stop: "stop", ev.Pin: "pin", ev.Boost: "boost",
        ev.PruneNode: "prune", ev.AddAction: "add", ev.SetBudget: "budget", ev.Note: "note", ev.Review: "review",
        ev.SetParallel: "parallel",
    }[type(command)]  # fmt: skip
