"""A run as text for people: the tree, one node's story, a summary. Plain lines that fit the width given."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from ksearch import tree as trees
from ksearch.budget import evaluations_committed
from ksearch.prompts.text import one_line, plural, ratio
from ksearch.prompts.treelines import grouped
from ksearch.protocol import Kind
from ksearch.state import State, working_s
from ksearch.types import Node, NodeStatus, Ratio, Tree

_SHAPES = {
    NodeStatus.SOLVED: "●", NodeStatus.ACTIVE: "◐", NodeStatus.OPEN: "○", NodeStatus.REJECTED: "✗",
    NodeStatus.PRUNED: "·",
}  # fmt: skip
_ASCII = str.maketrans("●◐○✗·★├└─│→…–↑", "*@o!.#|`-|>.-^")
_COLOURS = {
    NodeStatus.SOLVED: "32", NodeStatus.ACTIVE: "33", NodeStatus.OPEN: "36", NodeStatus.REJECTED: "31",
    NodeStatus.PRUNED: "2",
}  # fmt: skip
_LEGEND = "● solved  ◐ being worked on  ○ open  ✗ rejected  · pruned  ★ best  ↑ pinned"
_HIGHER = (
    "The best is decided between programs in paired rounds. One with a higher speedup over the baseline did not win "
    "them: the baseline was slower when it was measured."
)
_RIGHT = "{:>4} {:>4} {:>8}  {:>13}"
_RIGHT_WIDTH = len(_RIGHT.format("", "", "", ""))
MIN_WIDTH = 60


# --- the tree ------------------------------------------------------------------------------------------------------


def tree_text(state: State, width: int = 80, *, color: bool = False, ascii: bool = False) -> str:
    """The tree, one line per node: shape by status, id, title; then V, attempts, speedup over the baseline, and the
    predicted gain over the parent beside the measured one."""
    width = max(width, MIN_WIDTH)
    lines = [tree_heading(width)]
    for branch, node in walk(state.tree):
        line = tree_line(state, branch, node, width)
        lines.append(f"\x1b[{_COLOURS[node.status]}m{line}\x1b[0m" if color else line)
    lines += ["", textwrap.fill(_LEGEND, width)]
    lines += [textwrap.fill(_HIGHER, width)] if _outshone(state) else []
    text = "\n".join(lines)
    return to_ascii(text) if ascii else text


def tree_heading(width: int) -> str:
    return _columns("", _RIGHT.format("V", "att", "speedup", "said → gain"), width)


def tree_line(state: State, branch: str, node: Node, width: int) -> str:
    """One node of the tree; `branch` is the drawing that leads to it, as `walk` gives it."""
    return _columns(f"{_indent(branch, width)}{_left(node)}", _right(state, node), width)


def to_ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def _outshone(state: State) -> bool:
    """Whether a node's program has a higher speedup over the baseline than the best of the run."""
    best = state.evaluations.get(state.best_id or "")
    top = max((n.speedup.value for n in state.tree.values() if n.speedup and n.id != trees.ROOT), default=0.0)
    return bool(best and best.speedup and top > best.speedup.value)


def walk(tree: Tree) -> Iterator[tuple[str, Node]]:
    """(branch drawing, node), depth first, children in the order in which they came. No recursion: trees get deep."""
    children: dict[str | None, list[Node]] = {}
    for node in tree.values():
        children.setdefault(node.parent_id, []).append(node)
    stack: list[tuple[str, str, Node]] = [("", "", tree[trees.ROOT])]
    while stack:
        branch, below, node = stack.pop()
        yield branch, node
        kids = children.get(node.id, [])
        for i, child in reversed(list(enumerate(kids))):
            last = i == len(kids) - 1
            stack.append((below + ("└─" if last else "├─"), below + ("  " if last else "│ "), child))


def _indent(branch: str, width: int) -> str:
    """Deep nodes keep room for their id: the middle of a long branch is left out."""
    room = (width - _RIGHT_WIDTH) // 2
    return branch if len(branch) <= room else f"…{branch[len(branch) - room + 1 :]}"


def _left(node: Node) -> str:
    if node.id == trees.ROOT:
        return f"{_SHAPES[node.status]} root: the baseline"
    marks = " ↑" if node.pinned else ""
    return f"{_SHAPES[node.status]} {node.id}{marks} {one_line(node.action.title)}"


def _right(state: State, node: Node) -> str:
    if node.id == trees.ROOT:
        return _RIGHT.format("", "", "1.00x", "")
    cycle = state.cycles.get(node.id)
    attempts = len(cycle.attempts) if cycle else node.attempts
    speedup, gain, star = node.speedup, node.gain, node.program_id is not None and node.program_id == state.best_id
    if cycle and cycle.best_id:
        speedup = state.evaluations[cycle.best_id].speedup
        gain = next(
            (a.judged.versus_parent for a in cycle.attempts if a.program_id == cycle.best_id and a.judged), None
        )
        star = cycle.best_id == state.best_id
    told = f"{'★' if star else ''}{_short(speedup.value)}x" if speedup else ""
    return _RIGHT.format(f"{node.value:.2f}", attempts or "", told, _against(node, gain))


def _against(node: Node, gain: Ratio | None) -> str:
    """Prediction against outcome: "4.00 → 3.10x"; "?" where nothing is known yet."""
    predicted = node.action.predicted_speedup
    failed = node.status is NodeStatus.REJECTED
    if node.status is NodeStatus.PRUNED or (predicted is None and gain is None and not failed):
        return ""
    outcome = f"{_short(gain.value)}x" if gain else "none" if failed else "?"
    return f"{_short(predicted) if predicted is not None else '–'} → {outcome}"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.3g}"


def _columns(left: str, right: str, width: int) -> str:
    room = width - _RIGHT_WIDTH - 1
    return f"{cut_columns(left, room)} {right}".rstrip()


def cut_columns(text: str, room: int) -> str:
    """Cut and pad to columns on the screen; wide characters (CJK) take two, accents none."""
    if (used := sum(map(_columns_of, text))) > room:
        kept, used = "", 1
        for char in text:
            if used + _columns_of(char) > room:
                break
            kept += char
            used += _columns_of(char)
        text = f"{kept}…"
    return text + " " * (room - used)


def _columns_of(char: str) -> int:
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


# --- the summary ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spent:
    what: str
    used: str
    limit: str | None

    def __str__(self) -> str:
        return f"{self.used} of {self.limit} {self.what}" if self.limit is not None else f"{self.used} {self.what}"


def summary(state: State, width: int = 80) -> str:
    """Status, best, tree and budgets, a line each."""
    rows = [
        ("status", _status(state)),
        ("best", _best(state)),
        ("tree", _counts(state)),
        ("budget", ", ".join(map(str, _budgets(state)))),
    ]
    rows += [("out", out)] if (out := _out(state)) else []
    return "\n".join(_wrapped(label, text, width) for label, text in rows)


def _wrapped(label: str, text: str, width: int) -> str:
    return textwrap.fill(
        text, max(width, MIN_WIDTH), initial_indent=f"{label:<8}", subsequent_indent=" " * 8, break_on_hyphens=False
    )


def _status(state: State) -> str:
    if state.ended:
        return f"ended: {one_line(state.ended)}"
    if state.paused:
        return f"paused: {one_line(state.paused)}"
    if state.stopping:
        return f"stopping: {one_line(state.stopping)}"
    return "running"


def holder_of(state: State, program_id: str) -> str:
    """The node that a program belongs to, closed or at work; empty if it is no node's best."""
    owners = [n.id for n in state.tree.values() if n.program_id == program_id]
    owners += [id for id, c in state.cycles.items() if any(a.program_id == program_id for a in c.attempts)]
    return owners[0] if owners else ""


def _best(state: State) -> str:
    done = state.evaluations.get(state.best_id or "")
    if done is None or done.speedup is None or state.best_id is None:
        return "none yet: no program has passed"
    node_id = holder_of(state, state.best_id)
    title = f" {one_line(state.tree[node_id].action.title, 60)}" if node_id else ""
    doubts = f"; doubts: {', '.join(one_line(f, 60) for f in done.flags)}" if done.flags else ""
    where = f", {node_id}{title}" if node_id else ""
    return f"{ratio(done.speedup)} over the baseline{where}, program {state.best_id[:12]}{doubts}"


def _counts(state: State) -> str:
    groups = grouped(state.tree)
    solved = sum(n.status is NodeStatus.SOLVED for n in groups.closed)
    return (
        f"{solved} solved, {len(groups.closed) - solved} rejected, {len(groups.active)} being worked on, "
        f"{len(groups.frontier)} on the frontier, {len(groups.waiting)} waiting for their parents, "
        f"{groups.pruned} pruned"
    )


def _budgets(state: State) -> list[_Spent]:
    budget, spent = state.config.budget, state.spent
    unpriced = f" (and {plural(state.unpriced, 'call')} of unknown price)" if state.unpriced else ""
    tokens = f"{budget.tokens:,}" if budget.tokens is not None else None
    usd = f"{budget.usd:.2f}" if budget.usd is not None else None
    minutes = f"{budget.seconds / 60:.1f}" if budget.seconds is not None else None
    return [
        _Spent("evaluations", str(evaluations_committed(state)), str(budget.evaluations)),
        _Spent("attempts", str(state.attempts), str(budget.max_attempts)),
        _Spent(f"tokens{_cached(state)}", f"{spent.tokens:,}", tokens),
        _Spent(f"USD{unpriced}", f"{spent.usd or 0:.2f}", usd),
        _Spent("minutes of work", f"{working_s(state, state.last_at) / 60:.1f}", minutes),
    ]


def _cached(state: State) -> str:
    if not state.cached_tokens:
        return ""
    return f" ({100 * state.cached_tokens / state.prompt_tokens:.0f}% of the prompts from a cache)"


def _out(state: State) -> str:
    """Requests that somebody works on, and those that wait for somebody."""
    told = []
    for pending in state.pending.values():
        request = pending.request
        what = f"{request.id} {request.kind}{'' if request.kind is Kind.PLAN else f' for {request.node_id}'}"
        holder = f", held by {one_line(pending.lease.holder.name, 40)}" if pending.lease else ", nobody holds it"
        lost = f", lost {plural(len(pending.lost), 'time')}" if pending.lost else ""
        told.append(what + holder + lost)
    return "; ".join(told)
