"""From events to facts: the same whether events come as they happen or from the table, long after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ksearch import events as ev
from ksearch.fold import apply
from ksearch.protocol import Kind
from ksearch.state import State
from ksearch.trackers.base import Call, Closed, End, Fact, Measured, Start

MAX_PARAMETER = 250  # characters: what the trackers take of one value


@dataclass
class Feed:
    """A watcher of a run. `seq` counts the events; give it every one, in order."""

    run: str
    take: Callable[[Fact], None]
    seq: int = 0
    _began: dict[str, float] = field(default_factory=dict)  # request id -> when its present holder took it
    _kinds: dict[str, tuple[Kind, str]] = field(default_factory=dict)  # request id -> what it is, for which node

    def __call__(self, event: ev.Event, state: State) -> None:
        """`state` is the state after the event."""
        self.seq += 1
        for fact in self._facts(event, state):
            self.take(fact)

    def _facts(self, event: ev.Event, state: State) -> Iterator[Fact]:
        match event:
            case ev.RunStarted():
                yield Start(self.run, event.at, parameters(event))
            case ev.Asked(request=request):
                self._kinds[request.id] = (request.kind, request.node_id)
            case ev.Leased(request_id=id):
                self._began[id] = event.at
            case ev.Received():
                yield self._received(event)
            case ev.WorkLost() if fact := self._lost(event):
                yield fact
            case ev.Evaluated():
                yield self._evaluated(event, state)
            case ev.CycleClosed():
                yield self._closed(event, state)
            case ev.Ended(reason=reason):
                yield End(event.at, reason, summary(state), self.seq)

    def _received(self, e: ev.Received) -> Call:
        kind, node = self._kinds[e.request_id]
        began = self._began.get(e.request_id, e.at)
        return Call(self.seq, e.request_id, kind.value, node, e.model, began, e.at, e.cost.tokens, e.cost.usd, e.finish)

    def _lost(self, e: ev.WorkLost) -> Call | None:
        kind, node = self._kinds[e.request_id]
        if kind is Kind.EVALUATE:
            return None
        began = self._began.get(e.request_id, e.at)
        return Call(self.seq, e.request_id, kind.value, node, "", began, e.at, error=e.reason)

    def _evaluated(self, e: ev.Evaluated, state: State) -> Measured:
        node = self._kinds.get(e.request_id, (Kind.EVALUATE, ""))[1]
        best = state.evaluations.get(state.best_id or "")
        return Measured(
            self.seq,
            e.request_id,
            node,
            self._began.get(e.request_id, e.at),
            e.at,
            e.evaluation,
            state.evaluated,
            best.speedup.value if best and best.speedup else None,
            state.spent.tokens,
            state.spent.usd or 0.0,
        )

    def _closed(self, e: ev.CycleClosed, state: State) -> Closed:
        action = state.tree[e.node_id].action
        gain = e.gain.value if e.gain else None
        return Closed(
            self.seq, e.node_id, action.title, e.at, e.reason, action.predicted_speedup, gain, state.evaluated
        )


def feed_all(run: str, log: Iterable[ev.Event], take: Callable[[Fact], None], after: int = 0) -> State:
    """Tell of a whole log; of the facts of its first `after` events only what is needed to go on. Returns the state.

    A run that has not ended is told of as it stands, by an `End` without a reason.
    """
    state = State()

    def new(fact: Fact) -> None:
        if isinstance(fact, Start) or fact.seq > after:
            take(fact)

    feed = Feed(run, new)
    for event in log:
        state = apply(state, event)
        feed(event, state)
    if not state.ended:
        take(End(state.last_at, "", summary(state), feed.seq))
    return state


def parameters(event: ev.RunStarted) -> dict[str, Any]:
    """Rules and context, flat: {"budget.evaluations": 120, "task": "softmax", ...}."""
    found: dict[str, Any] = {}
    for name, value in asdict(event.config).items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": v for inner, v in value.items()}
        else:
            found[name] = value
    context = dict(event.context)
    for name, value in _settings(context.pop("config", "")).items():
        found.setdefault(name, value)
    context.pop("origins", None)
    found |= {name: value[:MAX_PARAMETER] for name, value in context.items()}
    return {name: value for name, value in found.items() if value is not None}


def _settings(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def summary(state: State) -> dict[str, Any]:
    """How it stands: what trackers show beside a run's name."""
    best = state.evaluations.get(state.best_id or "")
    found: dict[str, Any] = {
        "evaluations": state.evaluated,
        "attempts": state.attempts,
        "tokens": state.spent.tokens,
        "usd": state.spent.usd or 0.0,
        "unpriced_calls": state.unpriced,
        "working_seconds": state.worked_s,
    }
    if best and best.speedup:
        found |= {"best_speedup": best.speedup.value, "best_speedup_low": best.speedup.low}
        found |= {"best_speedup_high": best.speedup.high, "best_program": best.program_id}
    return found
