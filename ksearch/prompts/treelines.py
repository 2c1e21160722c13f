"""The tree as lines for a planner: one per node, short, with everything that a decision needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ksearch import tree as trees
from ksearch.prompts.text import cell, one_line, plural, quoted, ratio, score, times
from ksearch.protocol import Kind, Request
from ksearch.state import State
from ksearch.types import Node, NodeStatus, Tree


def _intent(node: Node) -> list[str]:
    """What was wanted, for nodes of any status."""
    action = node.action
    predicted = f"predicted {times(action.predicted_speedup)}" if action.predicted_speedup is not None else ""
    aims = "aims at " + ", ".join(cell(w) for w in action.workloads) if action.workloads else ""
    return [f for f in (predicted, aims, "enabling step" if action.enabling else "") if f]


def _line(node: Node, facts: Iterable[str]) -> str:
    return f"- {node.id} {quoted(node.action.title, 120)} under {node.parent_id}: {', '.join(facts)}"


def open_line(node: Node) -> str:
    pinned = ["pinned by a person: it is next"] if node.pinned else []
    begun = [f"begun: {plural(node.attempts, 'attempt')} before the run stopped"] if node.attempts else []
    facts = [f"V {node.value:.2f}", f"difficulty {node.action.difficulty}", *_intent(node), *begun, *pinned]
    return _line(node, facts)


def open_details(node: Node) -> str:
    """Rationale and notes, indented below the line."""
    lines = []
    if node.action.rationale:
        lines.append(f"\n  why: {one_line(node.action.rationale, 400)}")
    if node.notes:
        lines.append(f"\n  notes: {one_line(node.notes, 400)}")
    return "".join(lines)


def active_line(state: State, node: Node) -> str:
    cycle = state.cycles.get(node.id)
    return _line(node, ["being worked on", plural(len(cycle.attempts) if cycle else 0, "attempt"), *_intent(node)])


def plans_elsewhere(state: State, request: Request) -> list[str]:
    """What other planners are asked about at this moment, where several are at work."""
    out = [p.request for p in state.pending.values() if p.lease and p.request.kind is Kind.PLAN]
    ids = [r.node_id for r in out if r.id != request.id]
    return [f"- another plan is being made now, after {id}: leave to it what follows from {id}" for id in ids]


def closed_line(node: Node, best_id: str | None) -> str:
    return _line(node, outcome(node, best_id))


def outcome(node: Node, best_id: str | None) -> list[str]:
    """What came of a closed node."""
    if node.status is NodeStatus.SOLVED and node.speedup is not None:
        gain = f"gain over its parent {ratio(node.gain)}" if node.gain else "gain unknown"
        kept = "solved" if node.gain is None or node.gain.faster else "solved without a sure gain"
        facts = [f"{kept}, score {score(node.speedup)} ({ratio(node.speedup)})", gain]
        facts += ["BEST OF THE RUN"] if node.program_id == best_id else []
    else:
        facts = [node.status.value]
    closed = f"{plural(node.attempts, 'attempt')}, closed by {one_line(node.closed_because, 40) or 'nobody'}"
    return [*facts, *_intent(node), closed]


@dataclass(frozen=True, slots=True)
class Grouped:
    """The nodes of a tree by what a planner does with them."""

    frontier: tuple[Node, ...]  # highest V first: the order in which the engine would take them
    waiting: tuple[Node, ...]  # open, below something that is not solved
    active: tuple[Node, ...]
    closed: tuple[Node, ...]  # solved and rejected, without the root
    pruned: int


def grouped(tree: Tree) -> Grouped:
    frontier = sorted(trees.frontier(tree), key=lambda n: (not n.pinned, -n.value))
    ready = {n.id for n in frontier}
    by = [n for n in tree.values() if n.id != trees.ROOT]
    waiting = [n for n in by if n.status is NodeStatus.OPEN and n.id not in ready]
    return Grouped(
        tuple(frontier),
        tuple(sorted(waiting, key=lambda n: -n.value)),
        tuple(n for n in by if n.status is NodeStatus.ACTIVE),
        tuple(n for n in by if n.status in (NodeStatus.SOLVED, NodeStatus.REJECTED)),
        sum(n.status is NodeStatus.PRUNED for n in by),
    )


def best_path(state: State) -> tuple[str, ...]:
    """Ids from the node of the run's best program up to, but without, the root."""
    holds = [n.id for n in state.tree.values() if n.program_id and n.program_id == state.best_id]
    holds += [id for id, c in state.cycles.items() if any(a.program_id == state.best_id for a in c.attempts)]
    path: list[str] = []
    at = holds[0] if state.best_id and holds else trees.ROOT
    while at != trees.ROOT:
        path.append(at)
        at = state.tree[at].parent_id or trees.ROOT
    return tuple(path)


def by_priority(state: State, groups: Grouped) -> list[Node]:
    """Closed nodes, most telling first: the path to the best, parents of the frontier, then the newest."""
    path = set(best_path(state))
    parents = {n.parent_id for n in groups.frontier}
    newest = {n.id: i for i, n in enumerate(groups.closed)}
    return sorted(groups.closed, key=lambda n: (n.id not in path, n.id not in parents, -newest[n.id]))


def within(nodes: list[Node], line: Callable[[Node], str], limit: int) -> list[Node]:
    """The first nodes whose lines fit; a later, shorter one is still tried."""
    taken, used = [], 0
    for node in nodes:
        size = len(line(node)) + 1
        if used + size <= limit:
            taken.append(node)
            used += size
    return taken
