"""The picture that `ksearch watch` draws: lines of a given width and height, made of a state and nothing else.

A line is (style, text). Foreign text goes through `one_line`, so nothing in it drives the terminal or hides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ksearch import tree as trees
from ksearch.budget import evaluations_committed
from ksearch.holders import is_dead
from ksearch.prompts.text import one_line, plural, ratio
from ksearch.protocol import Holder, Kind
from ksearch.state import Pending, State, working_s
from ksearch.types import Node, NodeStatus
from ksearch.views import cut_columns, holder_of, to_ascii, tree_heading, tree_line, walk
from ksearch.web.rows import stale

Line = tuple[str, str]  # (style, text)

KEYS = "j/k move  Enter diff  l log  p pause  x prune  q quit"
STYLES = {
    NodeStatus.SOLVED: "green", NodeStatus.ACTIVE: "yellow", NodeStatus.OPEN: "cyan", NodeStatus.REJECTED: "red",
    NodeStatus.PRUNED: "dim",
}  # fmt: skip
BAR = 8  # characters of the gauge
MAX_LANES = 4
MAX_RESULTS = 5
TREE = 5  # lines of the tree at least, where the terminal has them
LATE_S = 30  # seconds after the end of a pause by which a driver that is there has gone on
QUIET_S = 600  # seconds without an event that are worth a remark while work is out


@dataclass
class View:
    """What the person at the terminal looks at."""

    cursor: str | None = None  # node; None: wherever work is
    asking: str | None = None  # what has been typed so far to "prune which node?"
    message: str = ""  # outcome of the last key
    problem: str = ""  # why nothing new is shown
    viewing: bool = False  # nothing can be said to this run
    last: Sequence[str] = field(default_factory=tuple)  # results, oldest first


def picture(
    run: str,
    state: State,
    view: View,
    now: float,
    width: int,
    height: int,
    *,
    ascii: bool = False,
    dead: Callable[[Holder], bool] = is_dead,
) -> list[Line]:
    """At most `height` lines of at most `width` columns: header, tree around the cursor, lanes, results, keys."""
    head = _header(run, state, view, now, dead)[: max(1, height - 3)]  # a node under the cursor is always in sight
    lanes = _lanes(state, now, dead)
    last = [("", one_line(text, 400)) for text in view.last][-MAX_RESULTS:]
    room = height - len(head) - 2  # the tree's heading, and the keys
    while lanes and room - len(lanes) - len(last) < TREE:
        lanes.pop()
    while last and room - len(lanes) - len(last) < TREE:
        last.pop(0)
    tree = _tree(state, view, width, max(1, room - len(lanes) - len(last)))
    spare = height - len(head) - len(tree) - len(lanes) - len(last) - 1
    gap: list[Line] = [("", "")] if spare > 0 else []
    lines = [*head, *tree, *gap, *lanes, *last]
    lines = [*lines[: height - 1], _footer(view, width)]
    cut = [(style, cut_columns(text, width).rstrip()) for style, text in lines]
    return [(style, to_ascii(text)) for style, text in cut] if ascii else cut


# --- the header ----------------------------------------------------------------------------------------------------


def _header(run: str, state: State, view: View, now: float, dead: Callable[[Holder], bool]) -> list[Line]:
    status = standing(state)
    style = "bold red" if state.paused else "bold"
    return [
        (style, f"{run}  {one_line(state.context.get('task', ''), 40)}  {one_line(status, 120)}"),
        _best(state),
        ("", _spent(state, now)),
        health(state, view, now, dead),
    ]


def standing(state: State) -> str:
    """One of running, paused, stopping, ended; with the reason."""
    for word, why in (("ended", state.ended), ("paused", state.paused), ("stopping", state.stopping)):
        if why is not None:
            return f"{word}: {why}" if why else word
    return "running"


def _best(state: State) -> Line:
    done = state.evaluations.get(state.best_id or "")
    if done is None or done.speedup is None or state.best_id is None:
        return "", "best   none yet: no program has passed"
    node = holder_of(state, state.best_id)
    doubts = f"  doubts: {', '.join(one_line(flag, 60) for flag in done.flags)}" if done.flags else ""
    where = f"  {node}" if node else ""
    return "bold yellow", f"best   {ratio(done.speedup)} over the baseline{where}  program {state.best_id[:12]}{doubts}"


def _spent(state: State, now: float) -> str:
    budget, spent = state.config.budget, state.spent
    used, limit = evaluations_committed(state), budget.evaluations
    full = min(BAR, round(BAR * used / limit)) if limit else BAR
    parts = [f"spent  {'#' * full}{'-' * (BAR - full)} {used}/{limit} evaluations"]
    unpriced = f" and {plural(state.unpriced, 'unpriced call')}" if state.unpriced else ""
    parts.append(f"${spent.usd or 0:.2f}{f'/${budget.usd:.2f}' if budget.usd is not None else ''}{unpriced}")
    parts.append(f"{short(spent.tokens)}{f'/{short(budget.tokens)}' if budget.tokens is not None else ''} tokens")
    limit_s = f"/{budget.seconds / 60:.0f}" if budget.seconds is not None else ""
    parts.append(f"{working_s(state, now) / 60:.1f}{limit_s} min")
    parts.append(f"{state.attempts} attempts")
    return "  ".join(parts)


def short(count: int) -> str:
    """950, "12.3k", "2.05M"."""
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)


def health(state: State, view: View, now: float, dead: Callable[[Holder], bool] = is_dead) -> Line:
    """Whether news can be expected: when the last event came, whether somebody works, what the model last failed at."""
    if view.problem:
        return "bold red", f"health {one_line(view.problem, 400)}"
    age = max(0.0, now - state.last_at)
    said = f"last event {duration(age)} ago"
    if state.paused_until is not None:
        return _waiting(state.paused_until - now, said)
    if state.ended or state.paused:
        return "dim", f"health {said}"
    lost = [reason for p in state.pending.values() for reason in p.lost[-1:]]
    if lost:
        return "red", f"health {said}; lost: {one_line(lost[-1], 200)}"
    at_work = [p.lease for p in state.pending.values() if p.lease and p.lease.deadline > now]
    if not any(not dead(lease.holder) for lease in at_work):
        return "red", f"health {said}; nobody is at work: `ksearch resume` goes on"
    if age > QUIET_S:
        return "red", f"health {said}; work is out, and nothing has been heard of it since"
    return "green", f"health {said}; {_stagnation(state) or 'at work'}"


def _waiting(left: float, said: str) -> Line:
    """A pause that ends by itself, if somebody is there to go on."""
    if left < -LATE_S:
        return "red", f"health {said}; nobody is at work: `ksearch resume` goes on"
    return "yellow", f"health {said}; goes on by itself in {duration(max(0.0, left))}"


def _stagnation(state: State) -> str:
    k = state.config.stagnation
    told = [f"{id} attempt {len(c.attempts)}, {stale(c)} of {k} without gain" for id, c in state.cycles.items()]
    return ", ".join(told)


def duration(seconds: float) -> str:
    """ "12 s", "3 min", "2 h 05 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


# --- the tree ------------------------------------------------------------------------------------------------------


def order(state: State) -> list[tuple[str, Node]]:
    """(branch drawing, node) from top to bottom: what j and k move through."""
    return list(walk(state.tree))


def cursor_at(view: View, rows: Sequence[tuple[str, Node]]) -> int:
    """Where the cursor is: the node that was moved to, else the one being worked on, else the last one solved."""
    for i, (_, node) in enumerate(rows):
        if node.id == view.cursor:
            return i
    for status in (NodeStatus.ACTIVE, NodeStatus.SOLVED):
        if found := [i for i, (_, node) in enumerate(rows) if node.status is status]:
            return found[-1]
    return 0


def _tree(state: State, view: View, width: int, room: int) -> list[Line]:
    rows = order(state)
    at = cursor_at(view, rows)
    above = max(0, min(at - room // 2, len(rows) - room))
    shown = rows[above : above + room]
    hidden = len(rows) - len(shown)
    heading = tree_heading(width - 2)
    told = f"  {len(rows) - 1} actions" + (f", {hidden} not shown" if hidden else "")
    lines: list[Line] = [("dim", told + f"  {heading}"[len(told) :])]
    for i, (branch, node) in enumerate(shown, above):
        mark, style = ("> ", f"reverse {STYLES[node.status]}") if i == at else ("  ", STYLES[node.status])
        lines.append((style, mark + tree_line(state, branch, node, width - 2)))
    return lines


# --- lanes, keys ---------------------------------------------------------------------------------------------------


def _lanes(state: State, now: float, dead: Callable[[Holder], bool]) -> list[Line]:
    """Work that is out, a line each: what, for which node, by whom, since when."""
    pending = list(state.pending.values())
    lines = [_lane(p, now, dead) for p in pending[:MAX_LANES]]
    if len(pending) > MAX_LANES:
        lines[-1] = "dim", f"out    and {len(pending) - MAX_LANES + 1} more requests"
    return lines


def _lane(pending: Pending, now: float, dead: Callable[[Holder], bool]) -> Line:
    request, lease = pending.request, pending.lease
    at = "the baseline" if request.node_id == trees.ROOT else request.node_id
    what = f"out    {_DOING[request.kind]:<7} {at:<5} {request.id:<5}"
    if lease is None:
        return "dim", f"{what} waits for somebody"
    who = one_line(lease.holder.name, 40) + (f" on {one_line(lease.holder.host, 20)}" if lease.holder.host else "")
    if dead(lease.holder):
        return "red", f"{what} {who} is gone: it is handed out again"
    if lease.deadline <= now:
        return "red", f"{what} {who} is {duration(now - lease.deadline)} late"
    return "", f"{what} {who} for {duration(max(0.0, now - lease.at))}"


_DOING = {Kind.PLAN: "plan", Kind.WRITE: "write", Kind.EVALUATE: "measure"}


def _footer(view: View, width: int) -> Line:
    if view.asking is not None:
        return "bold", f"prune which node, with all below it? {view.asking}_  (Enter: do it, Esc: leave it)"
    keys = "j/k move  Enter diff  l log  q quit" if view.viewing else KEYS
    if not view.message:
        return "dim", keys
    return "bold", one_line(view.message, max(20, width))
