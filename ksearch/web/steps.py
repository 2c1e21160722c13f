"""The edits of the tree, one by one: who made it, why, what it changed, and what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksearch import events as ev
from ksearch.protocol import Plan
from ksearch.state import State
from ksearch.types import Insert, Prune, TreeEdit, Update
from ksearch.web.rows import LONG, changes, command_kind, cut

if TYPE_CHECKING:
    from ksearch.web.projection import Projection

_MAX_EDITS = 50


def step_of(seen: Projection, before: State, event: ev.AnyEvent) -> dict[str, Any] | None:
    """The step that an event is in the slider, or None for an event that says nothing about the tree."""
    match event:
        case ev.Planned():
            return _planned(seen, before, event)
        case ev.PlanRefused():
            return _refused(seen, event)
        case ev.PlanAbandoned():
            return _step(seen, event.request_id, "given up", event.reason)
        case ev.CycleClosed():
            outcome = "cut short" if event.unfinished else "solved" if event.program_id else "rejected"
            text = f"{event.node_id} {outcome}: {event.reason}"
            return {
                "kind": outcome, "by": "engine", "node": event.node_id, "text": cut(text),
                "changes": changes(before.tree, seen.state.tree),
            }  # fmt: skip
        case ev.Submitted() if event.created:
            text = f"{event.created.id} made for a submitted program"
            edited = changes(before.tree, seen.state.tree)
            return {"kind": "submitted", "by": cut(event.author, 80), "node": event.node_id, "text": text,
                    "changes": edited}  # fmt: skip
        case ev.Commanded(command=ev.Pin() | ev.Boost() | ev.PruneNode() | ev.AddAction()):
            return _commanded(seen, before, event)
    return None


def _step(seen: Projection, request_id: str, kind: str, reason: str) -> dict[str, Any]:
    return {
        "kind": kind, "by": "planner", "node": seen.requests[request_id].node_id, "request": request_id,
        "text": "", "reason": cut(reason, LONG), "changes": [],
    }  # fmt: skip


def _planned(seen: Projection, before: State, event: ev.Planned) -> dict[str, Any]:
    step = _step(seen, event.request_id, "plan", event.assessment)
    step["changes"] = changes(before.tree, seen.state.tree)
    step["edits"] = [_edit(edit) for edit in event.edits[:_MAX_EDITS]]
    step["dropped"] = [cut(reason) for reason in event.dropped[:_MAX_EDITS]]
    step["why"] = seen.requests[event.request_id].why
    return step


def _refused(seen: Projection, event: ev.PlanRefused) -> dict[str, Any]:
    step = _step(seen, event.request_id, "refused", event.reason)
    if isinstance(event.offered, Plan):
        step["edits"] = [_edit(edit) for edit in event.offered.edits[:_MAX_EDITS]]
    return step


def _edit(edit: TreeEdit) -> dict[str, Any]:
    match edit:
        case Insert():
            return {
                "verb": "insert", "node": edit.id or edit.name, "parent": edit.parent_id,
                "title": cut(edit.action.title, 300), "v": edit.value, "why": cut(edit.action.rationale),
            }  # fmt: skip
        case Update():
            return {
                "verb": "update", "node": edit.node_id, "v": edit.value, "difficulty": edit.difficulty,
                "notes": None if edit.notes is None else cut(edit.notes),
            }  # fmt: skip
        case Prune():
            return {"verb": "prune", "node": edit.node_id, "why": cut(edit.reason)}


def _commanded(seen: Projection, before: State, event: ev.Commanded) -> dict[str, Any]:
    command = event.command
    node = command.id if isinstance(command, ev.AddAction) else getattr(command, "node_id", None)
    reason = command.reason if isinstance(command, ev.PruneNode) else ""
    return {
        "kind": command_kind(command), "by": cut(event.author, 80), "node": node, "text": "", "reason": cut(reason),
        "changes": changes(before.tree, seen.state.tree),
    }  # fmt: skip
