"""What a run has cost, by role, by model and by action, and what its gains have cost. Told from the log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch.accounts import added
from ksearch.fold import apply
from ksearch.protocol import Cost, Kind, Request
from ksearch.state import State
from ksearch.types import Node, Ratio

ROLES = {Kind.PLAN: "planner", Kind.WRITE: "writer"}
NO_REPLY = "(no reply)"  # who was called is known only where there are several writers


@dataclass
class Bill:
    """The calls of somebody, or for something. It adds up to what the run has spent."""

    replies: int = 0
    unanswered: int = 0  # calls without a reply: what was set aside for them counts as spent
    tokens: int = 0
    usd: float = 0.0  # an unknown price counts as what was set aside
    unpriced: int = 0  # replies of unknown price
    tokens_in: int = 0  # these three only of replies that report them
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_in_seen: int = 0  # prompts' tokens of replies that report what was read from a cache
    reporting: int = 0  # replies that do
    judged: int = 0  # attempts
    gains: int = 0  # attempts that made an action's gain surely larger
    log_gain: float = 0.0

    @property
    def cached_share(self) -> float | None:
        """Part of the prompts' tokens that came from a provider's cache; None where nobody reports it."""
        return self.tokens_cached / self.tokens_in_seen if self.tokens_in_seen else None

    @property
    def priced(self) -> bool:
        """Whether money says anything here."""
        return self.replies + self.unanswered > 0 and self.unpriced < max(1, self.replies)

    def per_doubling(self, log_gain: float | None = None) -> float | None:
        """What a gain of 2x has cost: USD, or tokens where the price is unknown. None: nothing was gained."""
        gain = self.log_gain if log_gain is None else log_gain
        return (self.usd if self.priced else float(self.tokens)) / (gain / math.log(2)) if gain > 0 else None


@dataclass
class Action:
    """The programs of one action: its plans are the planner's, for all."""

    node: Node
    bill: Bill = field(default_factory=Bill)
    evaluations: int = 0

    @property
    def gain(self) -> Ratio | None:
        return self.node.gain

    @property
    def per_doubling(self) -> float | None:
        gain = self.gain
        return self.bill.per_doubling(math.log(gain.value)) if gain and gain.value > 1 else None


@dataclass
class Costs:
    state: State
    total: Bill = field(default_factory=Bill)
    roles: dict[str, Bill] = field(default_factory=dict)
    models: dict[str, Bill] = field(default_factory=dict)  # as they named themselves in replies
    writers: dict[str, Bill] = field(default_factory=dict)  # as the settings name them, where there are several
    actions: dict[str, Action] = field(default_factory=dict)

    @property
    def speedup(self) -> Ratio | None:
        """Of the run's best program over the baseline."""
        best = self.state.evaluations.get(self.state.best_id or "")
        return best.speedup if best else None

    @property
    def per_doubling(self) -> float | None:
        return self.total.per_doubling(math.log(self.speedup.value)) if self.speedup else None


def costs(log: Iterable[ev.AnyEvent]) -> Costs:
    """Add up the log of a run."""
    teller = _Teller()
    for event in log:
        teller.tell(event)
    return teller.ended()


class _Teller:
    def __init__(self) -> None:
        self.state = State()
        self.found = Costs(self.state)
        self.requests: dict[str, Request] = {}
        self.models: dict[str, str] = {}
        self.out: dict[str, int] = {}  # calls made for a request and not answered
        self.evaluated: dict[str, int] = {}

    def tell(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.Asked(request=request):
                self.requests[request.id] = request
            case ev.Leased(request_id=id) if self._is_call(id):
                self.out[id] = self.out.get(id, 0) + 1
            case ev.WorkLost(request_id=id, billed=False) if id in self.out:
                self.out[id] -= 1
            case ev.Received() if event.request_id in self.requests:
                self._received(event)
            case ev.Evaluated(request_id=id):
                node_id = self.requests[id].node_id
                self.evaluated[node_id] = self.evaluated.get(node_id, 0) + 1
            case ev.Judged():
                self._judged(event)
        self.state = apply(self.state, event)

    def _is_call(self, request_id: str) -> bool:
        """A stored reply that is read again is no call, nor is a measurement."""
        pending = self.state.pending[request_id]
        return pending.request.kind is not Kind.EVALUATE and pending.received is None

    def _received(self, e: ev.Received) -> None:
        state, id = self.state, e.request_id
        self.models[id] = e.model
        self.out[id] = max(0, self.out.get(id, 0) - 1)
        held = state.reserved.get(id) or (Cost(), *state.lapsed.get(id, ()))[-1]
        usd = e.cost.usd if e.cost.usd is not None else held.usd or 0.0
        usage = e.usage
        for bill in self._bills(id, e.model or "(not named)"):
            bill.replies += 1
            bill.tokens += e.cost.tokens
            bill.usd += usd
            bill.unpriced += e.cost.usd is None
            if usage is None:
                continue
            bill.tokens_in += usage.tokens_in or 0
            bill.tokens_out += usage.tokens_out or 0
            if usage.tokens_cached is not None and usage.tokens_in is not None:
                bill.tokens_cached += usage.tokens_cached
                bill.tokens_in_seen += usage.tokens_in
                bill.reporting += 1

    def _judged(self, e: ev.Judged) -> None:
        cycle = self.state.cycles[e.node_id]
        request_id = cycle.attempts[e.attempt].request_id
        if not request_id:  # submitted: nobody was called
            return
        gain = added(cycle, e)
        for bill in self._bills(request_id, self.models.get(request_id) or "(not named)"):
            bill.judged += 1
            bill.gains += gain > 0
            bill.log_gain += gain

    def _bills(self, request_id: str, model: str) -> list[Bill]:
        """Those that a call belongs to."""
        request, found = self.requests[request_id], self.found
        bills = [found.total, found.roles.setdefault(ROLES[request.kind], Bill())]
        bills.append(found.models.setdefault(model, Bill()))
        if request.writer:
            bills.append(found.writers.setdefault(request.writer, Bill()))
        if request.kind is Kind.WRITE:
            bills.append(self._action(request.node_id).bill)
        return bills

    def _action(self, node_id: str) -> Action:
        return self.found.actions.setdefault(node_id, Action(self.state.tree[node_id]))

    def ended(self) -> Costs:
        state, found = self.state, self.found
        found.state = state
        for id, count in self.out.items():
            held = [*state.lapsed.get(id, ()), *([state.reserved[id]] if id in state.reserved else [])]
            for bill in self._bills(id, NO_REPLY) if count or held else ():
                bill.unanswered += count
                bill.tokens += sum(cost.tokens for cost in held)
                bill.usd += sum(cost.usd or 0.0 for cost in held)
        for node_id in self.evaluated:
            self._action(node_id).evaluations = self.evaluated[node_id]
        for node_id, action in found.actions.items():
            action.node = state.tree[node_id]
        return found
