"""Pure edits of the search tree: a tree in, a new tree out. A bad edit raises `InvalidEdit`; nothing is repaired."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from ksearch.errors import InvalidEdit
from ksearch.types import Action, Insert, Node, NodeStatus, Origin, Prune, Tree, TreeEdit, Update

ROOT = "root"
_CLOSED = (NodeStatus.PRUNED, NodeStatus.REJECTED)


def new_tree() -> Tree:
    """The root alone. It counts as solved, so that what hangs under it is on the frontier."""
    return {ROOT: Node(ROOT, None, Action("root"), status=NodeStatus.SOLVED, origin=Origin.ENGINE)}


def next_number(tree: Tree) -> int:
    """Ids are n1, n2, ... in order of insertion, and no node is ever removed: the last one tells the next."""
    last = next(reversed(tree))
    return 1 if last == ROOT else int(last.removeprefix("n")) + 1


def next_id(tree: Tree) -> str:
    return f"n{next_number(tree)}"


def edit(tree: Tree, change: TreeEdit) -> Tree:
    """One accepted edit: inserts carry the engine's id and a real parent."""
    match change:
        case Insert(parent_id, action, value, _, id):
            return insert(tree, Node(id, parent_id, action, value))
        case Update():
            return update(tree, change)
        case Prune(node_id):
            return prune(tree, node_id)


def edit_all(tree: Tree, changes: Iterable[TreeEdit]) -> Tree:
    for change in changes:
        tree = edit(tree, change)
    return tree


def insert(tree: Tree, node: Node) -> Tree:
    if node.id in tree:
        raise InvalidEdit(f"node id {node.id!r} is taken")
    parent = tree.get(node.parent_id or "")
    if parent is None:
        raise InvalidEdit(f"parent {node.parent_id!r} of {node.action.title!r} does not exist")
    if parent.status in _CLOSED:
        raise InvalidEdit(
            f"parent {parent.id!r} of {node.action.title!r} is {parent.status}: name a solved or open one"
        )
    return {**tree, node.id: node}


def update(tree: Tree, change: Update) -> Tree:
    node = _open(tree, change.node_id, "updated")
    action = node.action if change.difficulty is None else replace(node.action, difficulty=change.difficulty)
    value = node.value if change.value is None else change.value
    notes = node.notes if change.notes is None else change.notes
    return {**tree, node.id: replace(node, action=action, value=value, notes=notes)}


def prune(tree: Tree, node_id: str) -> Tree:
    """Withdraw an open node and all below it. A subtree at work, or with a program in it, stays."""
    node = _open(tree, node_id, "pruned")
    below = descendants(tree, node.id)
    for child in below:
        if tree[child].status in (NodeStatus.ACTIVE, NodeStatus.SOLVED):
            raise InvalidEdit(f"{node_id!r} cannot be pruned: {child!r} below it is {tree[child].status}")
    return put_status(tree, (node.id, *below), NodeStatus.PRUNED)


def put_status(tree: Tree, node_ids: Iterable[str], status: NodeStatus) -> Tree:
    """Nodes that are already closed keep their status: a rejected one is never reported as pruned."""
    changed = {id: replace(tree[id], status=status) for id in node_ids if tree[id].status not in _CLOSED}
    return {**tree, **changed}


def put(tree: Tree, node: Node) -> Tree:
    return {**tree, node.id: node}


def frontier(tree: Tree) -> list[Node]:
    """Open nodes whose parent is solved, oldest first."""
    return [n for n in tree.values() if n.status is NodeStatus.OPEN and tree[parent_of(n)].status is NodeStatus.SOLVED]


def parent_of(node: Node) -> str:
    if node.parent_id is None:
        raise InvalidEdit("the root has no parent")
    return node.parent_id


def descendants(tree: Tree, node_id: str) -> tuple[str, ...]:
    """Ids below a node, parents before children."""
    found = {node_id}
    for node in tree.values():
        if node.parent_id in found:
            found.add(node.id)
    return tuple(id for id in tree if id in found and id != node_id)


def open_below(tree: Tree, node_id: str) -> tuple[str, ...]:
    return tuple(id for id in descendants(tree, node_id) if tree[id].status is NodeStatus.OPEN)


def number_inserts(tree: Tree, edits: Iterable[TreeEdit], newer: Set[str] = frozenset()) -> tuple[TreeEdit, ...]:
    """Give each insert the engine's id, and put that id wherever the plan used the insert's local name.

    `newer`: nodes that the planner did not see, whose ids it may have used as names.
    """
    numbered: list[TreeEdit] = []
    names: dict[str, str] = {}
    number = next_number(tree)
    for change in edits:
        if isinstance(change, Insert):
            id = f"n{number}"
            number += 1
            numbered.append(replace(change, id=id, parent_id=names.get(change.parent_id, change.parent_id)))
            _remember(names, change.name, id, tree.keys() - newer)
        else:
            numbered.append(replace(change, node_id=names.get(change.node_id, change.node_id)))
    return tuple(numbered)


def accept(
    tree: Tree, seen: Tree, edits: tuple[TreeEdit, ...], max_new_nodes: int
) -> tuple[tuple[TreeEdit, ...], tuple[str, ...]]:
    """A planner's edits with their ids, all or none, and what was left out because events had overtaken it.

    Args:
        seen: the tree the planner was asked about: an edit that was right there is overtaken, not wrong.

    Raises:
        InvalidEdit: one edit is wrong, or there are too many inserts; none is taken.
    """
    inserts = sum(isinstance(e, Insert) for e in edits)
    if inserts > max_new_nodes:
        raise InvalidEdit(f"a plan may insert at most {max_new_nodes} nodes, this one inserts {inserts}")
    taken: list[TreeEdit] = []
    dropped: list[str] = []
    newer = tree.keys() - seen.keys()
    for change in number_inserts(tree, edits, newer):
        was_valid, seen = _try(seen, change)
        try:
            _no_twin(tree, newer, change)
            tree = _planned(tree, change)
            taken.append(change)
        except InvalidEdit as error:
            if not was_valid:
                raise
            dropped.append(f"overtaken: {error}")
    return tuple(taken), tuple(dropped)


def _try(tree: Tree, change: TreeEdit) -> tuple[bool, Tree]:
    try:
        return True, _planned(tree, change)
    except InvalidEdit:
        return False, tree


def _planned(tree: Tree, change: TreeEdit) -> Tree:
    if isinstance(change, Prune):
        _leave_to_people(tree, change.node_id)
    return edit(tree, change)


def _no_twin(tree: Tree, newer: Set[str], change: TreeEdit) -> None:
    """Whoever planned at the same time may have had the same idea."""
    if isinstance(change, Insert):
        title = _plain(change.action.title)
        for id in newer:
            if tree[id].parent_id == change.parent_id and _plain(tree[id].action.title) == title:
                raise InvalidEdit(f"{change.action.title!r} has come up since, as {id!r}")


def _plain(title: str) -> str:
    return " ".join(title.casefold().split())


def _leave_to_people(tree: Tree, node_id: str) -> None:
    """What a person pinned or added, the planner does not prune."""
    for id in (node_id, *descendants(tree, node_id)):
        node = tree.get(id)
        if node and node.status is NodeStatus.OPEN and (node.pinned or node.origin is Origin.PERSON):
            raise InvalidEdit(f"{node_id!r} cannot be pruned: a person {'pinned' if node.pinned else 'added'} {id!r}")


def _remember(names: dict[str, str], name: str, id: str, taken: Set[str]) -> None:
    if not name:
        return
    if name in names:
        raise InvalidEdit(f"local name {name!r} is used twice")
    if name in taken:
        raise InvalidEdit(f"local name {name!r} is the id of a node: choose another")
    names[name] = id


def _open(tree: Tree, node_id: str, verb: str) -> Node:
    node = tree.get(node_id)
    if node is None:
        raise InvalidEdit(f"node {node_id!r} does not exist")
    if node.status is not NodeStatus.OPEN:
        raise InvalidEdit(f"only an open node can be {verb}, {node_id!r} is {node.status}")
    return node
