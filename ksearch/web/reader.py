"""One run as the pages see it: follows the log, answers what changed since an event, and goes back in time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ksearch.codec import decode_event
from ksearch.errors import CodecError, Corrupt
from ksearch.fold import apply
from ksearch.state import State
from ksearch.store import Store, StoredEvent
from ksearch.web import rows
from ksearch.web.head import head
from ksearch.web.projection import Projection

POLL_S = 0.25  # the store is asked for news at most this often, however many pages look on
STRIDE = 256  # events between checkpoints, doubled when there are too many
MAX_CHECKPOINTS = 64
BATCH_S = 0.8  # a long log is taken in by such stretches: a page shows what is known so far
MAX_RECENT = 8  # states of the past that are kept for the next step of a slider


class RunReader:
    """Follows one run. Safe to share between threads. A damaged log is shown up to the damage, with its message."""

    def __init__(self, store: Store, run_id: str, *, poll_s: float = POLL_S) -> None:
        self.store = store
        self.id = run_id
        self.error: str | None = None
        self.total = 0  # events in the log when it was last looked at
        self._seen = Projection()
        self._stride = STRIDE
        self._checkpoints: dict[int, State] = {0: State()}
        self._recent: OrderedDict[int, State] = OrderedDict()
        self._lock = threading.Lock()
        self._poll_s = poll_s
        self._polled = 0.0

    # --- following ---

    def refresh(self) -> int:
        """Take in what is new, of a long log a part at a time; return the number of the last event taken in."""
        with self._lock:
            now = time.monotonic()
            if now - self._polled >= self._poll_s or self._seen.seq < self.total:
                self._follow(now + BATCH_S)
                self._polled = time.monotonic()
            return self._seen.seq

    def _look(self) -> None:
        """Refresh, but leave a long log that is being read to those who ask how far it is."""
        if self._seen.seq >= self.total or self.error:
            self.refresh()

    def _follow(self, until: float) -> None:
        self.total = self.store.run(self.id).seq
        if self.error or self.total == self._seen.seq:
            return
        try:
            for stored in self.store.read(self.id, self._seen.seq):
                self._take(stored)
                if time.monotonic() > until:
                    break
        except Corrupt as error:
            self.error = str(error)

    def _take(self, stored: StoredEvent) -> None:
        try:
            event = decode_event(stored.body)
            self._seen.apply(stored.seq, stored.at, event)
        except (CodecError, KeyError, ValueError) as error:
            raise Corrupt(f"run {self.id}, event {stored.seq} cannot be read: {error}") from error
        if stored.seq % self._stride == 0:
            self._checkpoints[stored.seq] = self._seen.state
            if len(self._checkpoints) > MAX_CHECKPOINTS:
                self._stride *= 2
                self._checkpoints = {s: c for s, c in self._checkpoints.items() if s % self._stride == 0}

    def events(self, after: int, limit: int) -> list[StoredEvent]:
        """Stored events after `after`, at most `limit`; those beyond a damage are not shown."""
        last = self.refresh()
        if after >= last:
            return []
        return [e for e in islice(self.store.read(self.id, after), limit) if e.seq <= last]

    # --- answers ---

    def snapshot(self, since: int = 0) -> dict[str, Any]:
        """The run at its last event; of nodes only those that changed after `since`."""
        self.refresh()
        with self._lock:
            seen = self._seen
            changed = [id for id in seen.state.tree if seen.nodes[id] > since or not since]
            return {
                "run": self.id, "seq": seen.seq, "since": since, "head": head(self, seen),
                "nodes": [self._node(id) for id in changed],
            }  # fmt: skip

    def _node(self, id: str) -> dict[str, Any]:
        seen = self._seen
        return {**rows.node_row(seen.state, id), "spent": seen.spent.get(id), "seq": seen.nodes[id]}

    def programs(self, since: int, limit: int) -> dict[str, Any]:
        """Attempts that changed after event `since`, the longest unchanged first."""
        self._look()
        with self._lock:
            return _page(self._newest(since), since, limit, self._seen.seq)

    def _newest(self, since: int) -> list[dict[str, Any]]:
        found = []
        for row in reversed(self._seen.tries.values()):
            if row["seq"] <= since:
                break
            found.append(row)
        return found[::-1]

    def listed(self, name: str, since: int, limit: int) -> dict[str, Any]:
        """Rows of `steps`, `calls`, `spans` or `remarks` that changed after event `since`."""
        self._look()
        with self._lock:
            kept: list[dict[str, Any]] = getattr(self._seen, name)
            found = [row for row in kept if row["seq"] > since]
            found.sort(key=lambda row: row["seq"])
            return _page(found, since, limit, self._seen.seq)

    def attempt(self, number: int) -> dict[str, Any] | None:
        self.refresh()
        with self._lock:
            return dict(self._seen.tries[number]) if number in self._seen.tries else None

    def of_program(self, program_id: str) -> tuple[State, dict[str, Any]] | None:
        """The state, and the first attempt that brought this program."""
        self.refresh()
        with self._lock:
            number = self._seen.number_of(program_id)
            return None if number is None else (self._seen.state, dict(self._seen.tries[number]))

    @property
    def state(self) -> State:
        with self._lock:
            return self._seen.state

    # --- back in time ---

    def tree_at(self, seq: int, known: int | None = None) -> dict[str, Any]:
        """The nodes after event `seq`; given `known`, only what differs from the tree after that event."""
        after = self._state_at(seq)
        before = self._state_at(known) if known is not None else None
        nodes = [
            rows.node_row(after, id)
            for id, node in after.tree.items()
            if before is None or before.tree.get(id) is not node or id in after.cycles or id in before.cycles
        ]
        gone = [] if before is None else [id for id in before.tree if id not in after.tree]
        return {"run": self.id, "seq": seq, "known": known, "nodes": nodes, "gone": gone, "best": after.best_id}

    def _state_at(self, seq: int) -> State:
        self.refresh()
        with self._lock:
            if seq >= self._seen.seq:
                return self._seen.state
            known = {**self._checkpoints, **self._recent}
        start = max(s for s in known if s <= seq)
        state = known[start]
        for stored in _up_to(self.store.read(self.id, start), seq):
            state = apply(state, decode_event(stored.body))
        with self._lock:
            self._recent[seq] = state
            self._recent.move_to_end(seq)
            while len(self._recent) > MAX_RECENT:
                self._recent.popitem(last=False)
        return state


def _up_to(events: Iterator[StoredEvent], seq: int) -> Iterable[StoredEvent]:
    for stored in events:
        if stored.seq > seq:
            return
        yield stored


def _page(found: list[dict[str, Any]], since: int, limit: int, seq: int) -> dict[str, Any]:
    """At most `limit` rows, never half of what one event changed; `next` is what to ask for after them."""
    if len(found) <= limit:
        return {"rows": found, "next": seq, "more": False, "since": since}
    end = limit
    while end < len(found) and found[end]["seq"] == found[end - 1]["seq"]:
        end += 1
    return {"rows": found[:end], "next": found[end - 1]["seq"], "more": end < len(found), "since": since}
