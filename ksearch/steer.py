"""What people and agents bring unasked: commands, and programs that nobody asked for.

They go the same way as replies: checked here, recorded as events with their author, applied by `fold`.
"""

from __future__ import annotations

from dataclasses import replace

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.budget import out_of_work
from ksearch.errors import InvalidCommand, InvalidEdit
from ksearch.search import following
from ksearch.state import State, measured_or_waiting
from ksearch.types import Action, Node, NodeStatus, Origin, Program, check_number


def command(state: State, wanted: ev.Command, author: str, now: float) -> list[ev.Event]:
    """Check what a person says and return what to record.

    Raises:
        InvalidCommand: it cannot be done in this state; the message says what can.
    """
    if isinstance(wanted, ev.AddAction):
        wanted = replace(wanted, id=trees.next_id(state.tree))
    event = ev.Commanded(at=now, command=wanted, author=author)
    try:
        _check(state, wanted)
        return following(state, [event], now)
    except (InvalidEdit, ValueError) as error:
        raise InvalidCommand(str(error)) from error


def _check(state: State, wanted: ev.Command) -> None:
    """What `fold` takes for granted. Edits of the tree check themselves when they are applied."""
    match wanted:
        case ev.Pin(node_id) if _node(state, node_id).status is not NodeStatus.OPEN:
            raise InvalidCommand(f"only an open node can be pinned, {node_id!r} is {_node(state, node_id).status}")
        case ev.Boost(_, value):
            check_number("value", value, 0, 1)
        case ev.Note(_, node_id, program_id):
            if node_id:
                _node(state, node_id)
            if program_id:
                _program(state, program_id)
        case ev.Review(program_id):
            _program(state, program_id)
        case ev.Pause() if state.paused and state.paused_until is None:
            raise InvalidCommand(f"the run is paused already: {state.paused}")
        case ev.Resume() if not (state.paused or state.stopping or state.ended):
            raise InvalidCommand("the run is neither paused nor ended: there is nothing to resume")
        case ev.Stop() if state.stopping or state.ended:
            raise InvalidCommand(f"the run has ended already: {state.ended or state.stopping}")


def _node(state: State, node_id: str) -> Node:
    if node_id not in state.tree:
        raise InvalidCommand(f"node {node_id!r} does not exist: `ksearch show` lists the nodes")
    return state.tree[node_id]


def _program(state: State, program_id: str) -> None:
    if program_id not in state.evaluations:
        raise InvalidCommand(f"program {program_id!r} has not been measured in this run")


def submit(
    state: State,
    program: Program,
    author: str,
    now: float,
    node_id: str = trees.ROOT,
    title: str = "",
    members: tuple[str, ...] = (),
) -> list[ev.Event]:
    """Let in a program that nobody asked for. It is measured as an attempt, and judged like any other.

    At an open or active node it is an attempt at that action. Under a solved node, or the root, the engine makes
    a node for it alone. `members`: the programs that a portfolio dispatches to.

    Raises:
        InvalidCommand: no such node, no budget, or the program is known already.
    """
    if known := measured_or_waiting(state, program.id):
        raise InvalidCommand(f"{known} (program {program.id[:12]})")
    if why := out_of_work(state):
        raise InvalidCommand(f"no room for another program, {why}: raise it with `ksearch command RUN budget`")
    if state.stopping:
        raise InvalidCommand(f"the run is stopping ({state.stopping}): `ksearch resume` it first")
    for member in members:
        _program(state, member)
    created = _created(state, node_id, title.strip() or f"submitted by {author}", bool(members))
    event = ev.Submitted(
        at=now,
        node_id=created.id if created else node_id,
        program_id=program.id,
        author=author,
        created=created,
        members=members,
    )
    return following(state, [event], now)


def _created(state: State, node_id: str, title: str, portfolio: bool) -> Node | None:
    node = _node(state, node_id)
    if node.status is NodeStatus.SOLVED:
        origin = Origin.PORTFOLIO if portfolio else Origin.SUBMITTED
        return Node(trees.next_id(state.tree), node_id, Action(title), origin=origin)
    if node.status is NodeStatus.ACTIVE:
        return None
    if node.status is not NodeStatus.OPEN:
        raise InvalidCommand(f"node {node_id!r} is {node.status}: submit under a solved or open one, or the root")
    if state.tree[trees.parent_of(node)].status is not NodeStatus.SOLVED:
        raise InvalidCommand(f"node {node_id!r} waits for its parent {node.parent_id!r}: submit under a solved node")
    return None
