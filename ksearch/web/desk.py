"""The runs that the server shows, and the way to speak to them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ksearch.codec import decode_event
from ksearch.errors import CodecError, InvalidCommand, KSearchError, StoreError
from ksearch.events import Commanded
from ksearch.run import Run
from ksearch.store import Store
from ksearch.web.reader import RunReader

MAX_READERS = 8  # runs kept folded in memory
MAX_KEYS = 1000  # idempotency keys remembered
MAX_RUNS = 500  # runs listed


@dataclass
class Desk:
    """`writable` opens the same store for writing, once a command comes; None: this store is for viewing only."""

    store: Store
    default: str | None = None
    writable: Callable[[], Store] | None = None
    author: str = "dashboard"
    _readers: OrderedDict[str, RunReader] = field(default_factory=OrderedDict)
    _done: OrderedDict[tuple[str, str], tuple[int, dict[str, Any]]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _speaking: threading.Lock = field(default_factory=threading.Lock)
    _writing: Store | None = None

    def reader(self, run_id: str | None) -> RunReader:
        """Raises:
        UnknownRun: there is none of that name.
        """
        name = run_id or self.default or self._latest()
        with self._lock:
            found = self._readers.get(name)
        if found is None:
            self.store.run(name)
            with self._lock:
                found = self._readers.setdefault(name, RunReader(self.store, name))
        with self._lock:
            self._readers.move_to_end(name)
            while len(self._readers) > MAX_READERS:
                self._readers.popitem(last=False)
        return found

    def _latest(self) -> str:
        infos = [info for info in self.store.runs() if info.seq]
        if not infos:
            raise StoreError(f"{self.store.name} holds no run yet: `ksearch run` begins one")
        return max(infos, key=lambda info: (info.updated_at, info.created_at)).id

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the newest first. What is not folded yet has its times only."""
        infos = sorted(self.store.runs(), key=lambda info: info.updated_at, reverse=True)[:MAX_RUNS]
        return [{"run": i.id, "events": i.seq, "created_at": i.created_at, "updated_at": i.updated_at} for i in infos]

    def command(self, run_id: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Say something to a run; return the HTTP status and the answer. The same key again: the same answer."""
        with self._speaking:  # one at a time: two requests with one key must not both be carried out
            if (run_id, key) in self._done:
                return self._done[run_id, key]
            answer = self._carry_out(run_id, body)
            self._done[run_id, key] = answer
            while len(self._done) > MAX_KEYS:
                self._done.popitem(last=False)
            return answer

    def _carry_out(self, run_id: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.writable is None:
            return 409, {"error": f"{self.store.name} is open for viewing only: nothing can be said to this run"}
        try:
            event = decode_event({"type": "commanded", "v": 1, "command": body, "author": self.author})
            assert isinstance(event, Commanded)
        except CodecError as error:
            return 422, {"error": str(error)}
        try:
            if self._writing is None:
                self._writing = self.writable()
            run = Run(self._writing, run_id)
            first = run.seq + 1
            said = run.command(event.command, self.author)
        except InvalidCommand as error:
            return 409, {"error": str(error)}
        except StoreError as error:
            return 503, {"error": str(error)}
        self.reader(run_id)
        return 200, {"seq": run.seq, "from": first, "events": [type(e).__name__ for e in said]}

    def close(self) -> None:
        if self._writing is not None:
            self._writing.close()


def status_of(error: KSearchError) -> int:
    return 404 if type(error).__name__ in ("UnknownRun", "UnknownBlob") else 503
