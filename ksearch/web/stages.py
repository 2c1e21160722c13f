"""How long each stage of the latest evaluations took, from their records: the parts of a lane."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from ksearch.errors import Corrupt, UnknownBlob
from ksearch.store import Store
from ksearch.web.reader import RunReader

MAX_ANSWER = 300  # evaluations in one answer
MAX_KEPT = 5000  # records remembered
ORDER = ("lease", "build", "warm", "smoke", "check", "screen", "time", "confirm")
MAX_RECORD = 16 * 1024 * 1024  # bytes of a record that are read


class Stages:
    """Reads a record once: what it says never changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, dict[str, Any] | None] = OrderedDict()

    def latest(self, reader: RunReader, limit: int) -> dict[str, Any]:
        """{program id: {"seconds": {stage: s}, "ending", "load", "state"}} of the newest evaluations."""
        reader.refresh()
        done = list(reader.state.evaluations.items())[-min(limit, MAX_ANSWER) :]
        found = {id: self._of(e.record) for id, e in done if e.record}
        return {"stages": {id: facts for id, facts in found.items() if facts}}

    def _of(self, sha: str) -> dict[str, Any] | None:
        if sha not in self._known:
            self._known[sha] = _read(self._store, sha)
            while len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
        return self._known[sha]


def in_order(seconds: dict[str, Any]) -> dict[str, float]:
    """Stages as they follow each other: a record's keys are sorted by name."""
    known = {str(k)[:40]: v for k, v in seconds.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    return dict(sorted(known.items(), key=lambda item: ORDER.index(item[0]) if item[0] in ORDER else len(ORDER)))


def _read(store: Store, sha: str) -> dict[str, Any] | None:
    try:
        data = store.get_blob(sha)
        body = json.loads(data) if len(data) <= MAX_RECORD else None
    except (UnknownBlob, Corrupt, ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("stage_seconds"), dict):
        return None
    return {
        "seconds": in_order(body["stage_seconds"]),
        **{k: body[k] for k in ("ending", "load") if body.get(k)},
        **_state(body.get("machine")),
    }


def _state(machine: Any) -> dict[str, Any]:
    """Clocks and temperatures, wherever the machine's description has them."""
    if not isinstance(machine, dict):
        return {}
    found = {k: v for k, v in machine.items() if "clock" in k or "temp" in k}
    for part in machine.values():
        if isinstance(part, dict):
            found |= {k: v for k, v in part.items() if "clock" in k or "temp" in k}
    return {"state": found} if found else {}
