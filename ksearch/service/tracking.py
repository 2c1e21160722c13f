"""Telling trackers of a run: while it goes on, or afterwards from its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ksearch import events as ev
from ksearch.errors import BadInput
from ksearch.fold import apply
from ksearch.run import Run
from ksearch.state import State
from ksearch.trackers import KINDS, End, Feed, Guarded, Start, feed_all, open_tracker
from ksearch.trackers.base import Fact
from ksearch.trackers.feed import summary

REMEMBER = frozenset({"wandb", "mlflow"})  # they know how far they were told: the whole log may be told again
AFTERWARDS_S = 600.0  # longest wait for a tracker that is told of a whole run


def wanted(text: str | None) -> tuple[str, ...]:
    """The kinds in "wandb, otel".

    Raises:
        BadInput: one of them does not exist, or its library is not installed.
    """
    kinds = tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))
    for kind in kinds:
        open_tracker(kind, "", 0.0)
    return kinds


@contextmanager
def tracked(run: Run, kinds: Sequence[str], say: Callable[[str], None]) -> Iterator[None]:
    """Tell each tracker what the run does while this lasts. Nothing that they do is felt in here."""
    guards = [guard for kind in kinds if (guard := _guard(run, kind, say)) is not None]
    if not guards:
        yield
        return
    watch = _Watch(run, guards, say)
    run.watchers.append(watch)
    try:
        yield
    finally:
        run.watchers.remove(watch)
        watch.end(run.state)
        for guard in guards:
            guard.close()


def _guard(run: Run, kind: str, say: Callable[[str], None]) -> Guarded | None:
    try:
        return Guarded(kind, open_tracker(kind, run.id, run.store.run(run.id).created_at), say)
    except BadInput as error:  # it was there when the run was begun
        say(f"not tracked: {error}")
        return None


class _Watch:
    """Feeds all guards. What was before is told to those that remember; the others get how it began."""

    def __init__(self, run: Run, guards: Sequence[Guarded], say: Callable[[str], None]) -> None:
        self._guards = guards
        self._say = say
        self._old = run.seq
        self._failed = False
        self._feed = Feed(run.id, self._hand_out)
        state = State()
        for event in run.log()[: run.seq]:
            state = apply(state, event)
            self(event, state)

    def __call__(self, event: ev.Event, state: State) -> None:
        if self._failed:
            return
        try:
            self._feed(event, state)
        except Exception as error:  # noqa: BLE001  # the boundary: what is told to others must not stop a search
            self._failed = True
            self._say(f"no longer tracked: {type(error).__name__}: {error}. Please report it; the run goes on")

    def _hand_out(self, fact: Fact) -> None:
        new = isinstance(fact, Start) or self._feed.seq > self._old
        for guard in self._guards:
            if new or guard.name in REMEMBER:
                guard.take(fact)

    def end(self, state: State) -> None:
        if not state.ended:
            self._hand_out(End(state.last_at, "", summary(state), self._feed.seq))


def track(run: Run, kind: str, say: Callable[[str], None], wait_s: float = AFTERWARDS_S) -> bool:
    """Tell one tracker of the whole run, from its events. False: it did not take everything.

    Raises:
        BadInput: there is no such tracker, or its library is not installed.
    """
    guard = Guarded(kind, open_tracker(kind, run.id, run.store.run(run.id).created_at), say, patient=True)
    feed_all(run.id, run.log(), guard.take)
    return guard.close(wait_s)


__all__ = ["KINDS", "track", "tracked", "wanted"]
