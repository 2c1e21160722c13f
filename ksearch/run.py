"""One run: the pure core joined to its log in a store.

Every method does the same: read what is new, let the core decide on the state it knows, append optimistically,
and decide again if somebody else came first. So any number of drivers, shells and servers share a run, and no
lock is ever held. What is appended is on the disk before the method returns, and so before its effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from ksearch import events as ev
from ksearch import search, steer
from ksearch import tree as trees
from ksearch.codec import decode_event, decode_program, encode_event
from ksearch.errors import CodecError, Conflict, Corrupt, InvalidCommand, InvalidReply
from ksearch.fold import apply, fold
from ksearch.holders import is_dead
from ksearch.protocol import Cost, Done, Holder, Kind, Reply, Request, SearchConfig, Usage, Wait
from ksearch.search import ALL_KINDS
from ksearch.state import State, was_asked
from ksearch.store import Store, blob_name
from ksearch.types import Program

Decision = Callable[[State, float], list[ev.Event]]
Watcher = Callable[[ev.Event, State], None]  # an event, and the state after it
Render = Callable[[State, Request], bytes | None]

LEASE_S = 3600.0  # an agent may think for long; a dead local driver is found at once


class Run:
    """A run in a store, with its state in memory.

    Args:
        clock: seconds since the epoch; tests give their own.
        watch: a first watcher, which is shown the events that are in the log already, too.

    Raises:
        UnknownRun: the store has no run of that name.
        Corrupt: the log has been damaged, or is not one of ours.
    """

    def __init__(
        self, store: Store, run_id: str, clock: Callable[[], float] = time.time, watch: Watcher | None = None
    ) -> None:
        self.store = store
        self.id = run_id
        self.clock = clock
        self.state = State()
        self.seq = 0
        self._prompt = "", b""  # name and text of the one that was recorded last: it is asked for next
        self.watchers: list[Watcher] = [watch] if watch else []  # shown each event this run appends or reads
        self.refresh()

    @classmethod
    def create(
        cls,
        store: Store,
        run_id: str,
        config: SearchConfig,
        context: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Run:
        """Begin a run. `context` holds what faces need to go on with it: task, models, versions."""
        store.create_run(run_id, {"format": 1})
        run = cls(store, run_id, clock)
        run._record(lambda _, now: [ev.RunStarted(at=now, config=config, context=context or {})])
        return run

    # --- reading ---

    def refresh(self) -> State:
        """Fold in what others have appended."""
        for stored in self.store.read(self.id, self.seq):
            try:
                event = decode_event(stored.body)
                state = apply(self.state, event)
            except (CodecError, KeyError, ValueError) as error:
                raise Corrupt(f"run {self.id}, event {stored.seq}: {error}") from error
            self._advance(stored.seq, event, state)
        return self.state

    def _advance(self, seq: int, event: ev.Event, state: State) -> None:
        self.seq, self.state = seq, state
        for watcher in self.watchers:
            watcher(event, state)

    def program(self, program_id: str) -> Program:
        return decode_program(self.store.get_blob(program_id))

    def log(self) -> list[ev.Event]:
        """All events so far, from the store."""
        return [decode_event(stored.body) for stored in self.store.read(self.id)]

    # --- work ---

    def take(
        self,
        holder: Holder,
        kinds: frozenset[Kind] = ALL_KINDS,
        lease_s: float = LEASE_S,
        render: Render = lambda *_: None,
    ) -> Request | Wait | Done:
        """The next piece of work, leased to `holder`. `render` makes its prompt, which is recorded by hash."""
        answer: list[Request | Wait | Done] = []
        prompts: list[bytes] = []

        def decide(state: State, now: float) -> list[ev.Event]:
            events = search.due(state, now, is_dead)
            state = fold(events, state)
            answer[:], prompts[:] = [search.ask(state, now, kinds)], []
            if not isinstance(answer[0], Request):
                return events
            if (prompt := render(state, answer[0])) is not None:
                prompts.append(prompt)
            sha = None if prompt is None else blob_name(prompt)
            return [*events, *search.lease(state, answer[0], holder, now, lease_s, None, sha)]

        self._record(decide, prompts)
        if prompts:
            self._prompt = blob_name(prompts[0]), prompts[0]
        return answer[0]

    def receive(
        self,
        request_id: str,
        raw: bytes,
        cost: Cost | None = None,
        model: str = "",
        finish: str = "",
        usage: Usage | None = None,
        sent: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        """Store a raw reply and settle its cost, before anybody tries to read it."""

        def decide(state: State, now: float) -> list[ev.Event]:
            if not was_asked(state, request_id):
                raise InvalidReply(f"no request {request_id!r} was made in run {self.id}")
            paid, sha = cost or Cost(), blob_name(raw)
            came = ev.Received(
                at=now, request_id=request_id, raw=sha, cost=paid, model=model, finish=finish, usage=usage, sent=sent,
                notes=notes,
            )  # fmt: skip
            return [came]

        self._record(decide, [raw])

    def received(self, request_id: str) -> tuple[bytes, str] | None:
        """A reply that was stored and not told, and how it ended: read again instead of asked, and paid, again."""
        pending = self.state.pending.get(request_id)
        if pending is None or pending.received is None:
            return None
        return self.store.get_blob(pending.received.raw), pending.received.finish

    def prompt(self, request_id: str) -> bytes | None:
        """The prompt recorded with the present lease of a request."""
        pending = self.state.pending.get(request_id)
        sha = pending.lease.prompt if pending and pending.lease else None
        if sha is not None and sha == self._prompt[0]:
            return self._prompt[1]
        return None if sha is None else self.store.get_blob(sha)

    def tell(
        self, request_id: str, reply: Reply, holder: Holder | None = None, blobs: Sequence[bytes] = ()
    ) -> list[ev.Event]:
        """Record an answer and what follows from it. Idempotent; see `search.tell`."""
        kept = [*blobs, reply.canonical] if isinstance(reply, Program) else list(blobs)
        return self._record(lambda state, now: search.tell(state, request_id, reply, now, holder), kept)

    def release(self, holder: Holder, reason: str) -> None:
        """Give back what a holder had taken: it stops cleanly, and the work is asked again."""

        def decide(state: State, now: float) -> list[ev.Event]:
            held = [id for id, p in state.pending.items() if p.lease and p.lease.holder == holder]
            expired: list[ev.Event] = [ev.Expired(at=now, request_id=id, reason=reason) for id in held]
            return search.following(state, expired, now)

        self._record(decide)

    # --- people ---

    def command(self, wanted: ev.Command, author: str) -> list[ev.Event]:
        return self._record(lambda state, now: steer.command(state, wanted, author, now))

    def submit(
        self,
        program: Program,
        author: str,
        node_id: str = trees.ROOT,
        title: str = "",
        members: tuple[str, ...] = (),
    ) -> list[ev.Event]:
        """Let in a program that nobody asked for; see `steer.submit`."""
        return self._record(
            lambda state, now: steer.submit(state, program, author, now, node_id, title, members),
            [program.canonical],
        )

    # --- appending ---

    def _record(self, decide: Decision, blobs: Iterable[bytes] = ()) -> list[ev.Event]:
        """Decide on the state at hand and append; when others have been here, read and decide again."""
        while True:
            try:
                events = decide(self.state, self.clock())
            except (InvalidReply, InvalidCommand):
                if not self._is_behind():
                    raise
                continue
            if not events and self._is_behind():
                continue
            if not events or self._append(events, tuple(blobs)):
                return events

    def _is_behind(self) -> bool:
        seq = self.seq
        self.refresh()
        return self.seq > seq

    def _append(self, events: Sequence[ev.Event], blobs: Sequence[bytes]) -> bool:
        try:
            self.store.append(self.id, self.seq, [encode_event(e) for e in events], blobs)
        except Conflict:
            self.refresh()
            return False
        for event in events:
            self._advance(self.seq + 1, event, apply(self.state, event))
        return True
