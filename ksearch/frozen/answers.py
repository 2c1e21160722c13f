"""What the pages of a frozen run may ask for, gathered beforehand: the same answers that the server gives.

The most telling comes first (the best program, then those that improved on something), so that a run too large
for one file loses what matters least, and says what it lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ksearch.codec import decode_event
from ksearch.errors import Corrupt, UnknownBlob
from ksearch.fold import apply
from ksearch.frozen.strict import dumps
from ksearch.state import State
from ksearch.store import Store
from ksearch.web import rows
from ksearch.web.compare import heat_map
from ksearch.web.detail import program_detail
from ksearch.web.reader import RunReader

MAX_BYTES = 64 * 1024 * 1024  # of programs, prompts and replies, about
MAX_BLOB = 1024 * 1024  # characters kept of one prompt or reply
ALL = 10**9
HEAT_MAP = 500  # programs in the table of workloads, as the server's most


def frozen_answers(store: Store, run_id: str, max_bytes: int = MAX_BYTES, now: float | None = None) -> dict[str, Any]:
    """Everything the pages show of a run, as JSON values.

    Args:
        max_bytes: for sources, logs, samples, prompts and replies together.

    Raises:
        UnknownRun: the store has no such run.
    """
    reader = RunReader(store, run_id, poll_s=0)
    snapshot = reader.snapshot()
    found: dict[str, Any] = {"run": run_id, "frozen_at": now or time.time(), "snapshot": snapshot}
    found["programs"] = reader.programs(0, ALL)["rows"]
    for name in ("steps", "calls", "spans", "remarks"):
        found[name] = reader.listed(name, 0, ALL)["rows"]
    found["workloads"] = {order: heat_map(reader, HEAT_MAP, order) for order in ("best", "worst", "newest")}
    found["trees"] = list(_trees(reader, [step["seq"] for step in found["steps"]]))
    room = _Room(max_bytes)
    attempts = sorted(found["programs"], key=lambda row: _rank(row, reader.state.best_id))
    found["program"] = dict(_programs(reader, attempts, room))
    found["blob"] = dict(_blobs(store, attempts, found["calls"], found["spans"], room))
    snapshot["head"]["notes"] = [*snapshot["head"]["notes"], *_notes(found, room)]
    return found


def _rank(row: dict[str, Any], best_id: str | None) -> tuple[int, int]:
    """The best, what improved, what passed, the rest; the newest first."""
    kinds = (row.get("program") == best_id, row.get("best") or row.get("improved"), row.get("verdict") == "passed")
    return next((i for i, is_one in enumerate(kinds) if is_one), len(kinds)), -row["n"]


class _Room:
    """What is left of the file, and what did not fit."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.lost: dict[str, int] = {}

    def takes(self, value: Any) -> bool:
        size = len(dumps(value))
        if size <= self.left:
            self.left -= size
            return True
        return False

    def lose(self, what: str) -> None:
        self.lost[what] = self.lost.get(what, 0) + 1


def _programs(
    reader: RunReader, attempts: Iterable[dict[str, Any]], room: _Room
) -> Iterator[tuple[str, dict[str, Any]]]:
    seen = set()
    for row in attempts:
        id = row.get("program")
        if not id or id in seen:
            continue
        seen.add(id)
        detail = program_detail(reader, id)
        if detail is None:
            continue
        if room.takes(detail):
            yield id, detail
        elif room.takes(lean := {**detail, "measured": None}):
            room.lose("programs' samples")
            yield id, lean
        else:
            room.lose("programs")


def _blobs(
    store: Store,
    attempts: Iterable[dict[str, Any]],
    calls: Iterable[dict[str, Any]],
    spans: Iterable[dict[str, Any]],
    room: _Room,
) -> Iterator[tuple[str, str]]:
    wanted = [row.get(name) for row in (*attempts, *calls, *spans) for name in ("raw", "prompt")]
    for sha in dict.fromkeys(name for name in wanted if name):
        try:
            text = store.get_blob(sha)[: 4 * MAX_BLOB].decode("utf-8", "replace")
        except (UnknownBlob, Corrupt):
            continue  # the page says that it is not here
        if len(text) > MAX_BLOB:
            text = f"{text[:MAX_BLOB]}\n[... cut here when the run was frozen]"
        if room.takes(text):
            yield sha, text
        else:
            room.lose("prompts and replies")


def _trees(reader: RunReader, seqs: list[int]) -> Iterator[dict[str, Any]]:
    """For each step of the replay, the nodes that differ from the step before."""
    wanted = iter(sorted(set(seqs)))
    at = next(wanted, None)
    state = State()
    before = replace(state, tree={})
    for stored in reader.store.read(reader.id):
        if at is None:
            return
        state = apply(state, decode_event(stored.body))
        if stored.seq == at:
            yield _difference(before, state, at)
            before, at = state, next(wanted, None)


def _difference(before: State, after: State, seq: int) -> dict[str, Any]:
    nodes = [
        rows.node_row(after, id)
        for id, node in after.tree.items()
        if before.tree.get(id) is not node or id in after.cycles or id in before.cycles
    ]
    return {
        "seq": seq,
        "best": after.best_id,
        "nodes": nodes,
        "gone": [id for id in before.tree if id not in after.tree],
    }


def _notes(found: dict[str, Any], room: _Room) -> list[str]:
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(found["frozen_at"]))
    notes = [f"Frozen at {when}, event {found['snapshot']['seq']}: nothing here changes any more."]
    if room.lost:
        told = ", ".join(f"{count:,} {what}" for what, count in room.lost.items())
        notes.append(f"Left out, for the size of this file: {told}. `ksearch export --max-mb` makes more room.")
    return notes
