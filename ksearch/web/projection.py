"""What the pages need beside the state, gathered as events come in: attempts, edits of the tree, calls, lanes.

Each thing remembers the number of the event that last changed it, so that a page asks for what is new since the
event it knows, and nothing is kept for any one page. The state itself comes from the core's own `apply`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ksearch import events as ev
from ksearch.fold import apply
from ksearch.protocol import Cost, Kind, Request
from ksearch.state import State
from ksearch.web import rows
from ksearch.web.steps import step_of

MAX_OUTCOME = 200  # characters


@dataclass
class Projection:
    """One run, up to event `seq`."""

    state: State = field(default_factory=State)
    seq: int = 0
    started_at: float | None = None
    last_at: float | None = None  # when the last event was stored
    nodes: dict[str, int] = field(default_factory=lambda: {"root": 0})  # id -> event that last changed it
    spent: dict[str, dict[str, Any]] = field(default_factory=dict)  # node id -> {"tokens", "usd", "calls", ...}
    tries: OrderedDict[int, dict[str, Any]] = field(default_factory=OrderedDict)  # attempts, last changed last
    steps: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[dict[str, Any]] = field(default_factory=list)
    mix: dict[str, int] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    _open: dict[str, dict[str, Any]] = field(default_factory=dict)  # request id -> its span
    _call: dict[str, dict[str, Any]] = field(default_factory=dict)  # request id -> its last call
    _by_request: dict[str, int] = field(default_factory=dict)  # write request -> attempt number
    _by_program: dict[str, int] = field(default_factory=dict)  # program id -> attempt number of its first try
    _cycle: dict[str, list[int]] = field(default_factory=dict)  # node id -> attempts of its open cycle

    def apply(self, seq: int, stored_at: float, event: ev.AnyEvent) -> None:
        """Take in event `seq`.

        Raises:
            KeyError, ValueError: the log is not one of ours from here on.
        """
        before = self.state
        self.state = apply(before, event)
        self.seq, self.last_at = seq, stored_at
        if self.started_at is None:
            self.started_at = event.at
        for id in _touched(before, self.state, event):
            self.nodes[id] = seq
        if handler := _HANDLERS.get(type(event)):
            handler(self, event)
        if step := step_of(self, before, event):
            self.steps.append({"i": len(self.steps), "seq": seq, "at": event.at, **step})

    # --- attempts ---

    def attempt(self, number: int, **facts: Any) -> None:
        """Set facts of attempt `number`, which thereby is the last changed."""
        self.tries[number].update(facts, seq=self.seq)
        self.tries.move_to_end(number)

    def _new_attempt(self, node_id: str, request_id: str, at: float, **facts: Any) -> None:
        number = len(self.tries)
        cycle = self._cycle.setdefault(node_id, [])
        open_cycle = self.state.cycles.get(node_id)
        self.tries[number] = {
            "n": number, "seq": self.seq, "node": node_id, "request": request_id, "at": at, "index": len(cycle),
            "base": open_cycle.base_id if open_cycle else None, "program": None, "verdict": None, **facts,
        }  # fmt: skip
        cycle.append(number)
        if request_id:
            self._by_request[request_id] = number
        if program_id := facts.get("program"):
            self._by_program.setdefault(program_id, number)

    def number_of(self, program_id: str) -> int | None:
        return self._by_program.get(program_id)

    # --- what each event adds ---

    def asked(self, e: ev.Asked) -> None:
        self.requests[e.request.id] = e.request
        if e.request.kind is Kind.WRITE:
            self._new_attempt(e.request.node_id, e.request.id, e.at)

    def submitted(self, e: ev.Submitted) -> None:
        self._new_attempt(e.node_id, "", e.at, program=e.program_id, by=rows.cut(e.author, 80))

    def leased(self, e: ev.Leased) -> None:
        self._close_span(e.request_id, e.at, "handed on")
        request = self.requests[e.request_id]
        span = {
            "request": e.request_id, "kind": request.kind.value, "node": request.node_id, "prompt": e.prompt,
            "program": request.program_id, "holder": rows.cut(e.holder.name, 80), "host": rows.cut(e.holder.host, 80),
            "pid": e.holder.pid, "start": e.at, "end": None, "outcome": None, "i": len(self.spans), "seq": self.seq,
        }  # fmt: skip
        self.spans.append(span)
        self._open[e.request_id] = span

    def _close_span(self, request_id: str, at: float, outcome: str) -> None:
        if span := self._open.pop(request_id, None):
            span.update(end=at, outcome=rows.cut(outcome, MAX_OUTCOME), seq=self.seq)

    def received(self, e: ev.Received) -> None:
        request = self.requests[e.request_id]
        span = self._open.get(e.request_id)
        call = {
            "i": len(self.calls), "seq": self.seq, "at": e.at, "request": e.request_id, "kind": request.kind.value,
            "node": request.node_id, "model": rows.cut(e.model, 80), "finish": rows.cut(e.finish, 80),
            "tokens": e.cost.tokens, "usd": e.cost.usd, "raw": e.raw, "prompt": span["prompt"] if span else None,
            "seconds": e.at - span["start"] if span else None, "outcome": None, "sent": rows.cut(e.sent, 600),
            "notes": [rows.cut(note, 300) for note in e.notes[:8]],
        }  # fmt: skip
        self.calls.append(call)
        self._call[e.request_id] = call
        self._pay(request.node_id, e.cost)
        if (number := self._by_request.get(e.request_id)) is not None:
            self.attempt(number, raw=e.raw, prompt=call["prompt"], by=call["model"], call=call["i"])

    def _pay(self, node_id: str, cost: Cost) -> None:
        spent = self.spent.setdefault(node_id, {"tokens": 0, "usd": 0.0, "calls": 0, "unpriced": 0})
        spent["tokens"] += cost.tokens
        spent["usd"] += cost.usd or 0.0
        spent["calls"] += 1
        spent["unpriced"] += cost.usd is None

    def settle(self, request_id: str, at: float, outcome: str) -> None:
        """A request is answered, or given up: its lane ends and its call has an outcome."""
        self._close_span(request_id, at, outcome)
        if call := self._call.get(request_id):
            call.update(outcome=rows.cut(outcome, MAX_OUTCOME), seq=self.seq)

    def planned(self, e: ev.Planned) -> None:
        self.settle(e.request_id, e.at, "planned")

    def plan_refused(self, e: ev.PlanRefused) -> None:
        self.settle(e.request_id, e.at, e.verdict.value if e.verdict else "edits refused")

    def plan_abandoned(self, e: ev.PlanAbandoned) -> None:
        self.settle(e.request_id, e.at, "given up")

    def written(self, e: ev.Written) -> None:
        self.settle(e.request_id, e.at, "written")
        number = self._by_request[e.request_id]
        self._by_program.setdefault(e.program_id, number)
        self.attempt(number, program=e.program_id)

    def write_failed(self, e: ev.WriteFailed) -> None:
        self.settle(e.request_id, e.at, e.verdict.value)
        self._count(e.verdict.value)
        facts = {"verdict": e.verdict.value, "reason": rows.cut(e.reason), "program": e.program_id, "done_at": e.at}
        self.attempt(self._by_request[e.request_id], **facts, **self._meters())

    def evaluated(self, e: ev.Evaluated) -> None:
        done = e.evaluation
        self.settle(e.request_id, e.at, done.verdict.value)
        self._count(done.verdict.value)
        facts = {**rows.evaluated_row(done), "done_at": e.at, "eval": self.state.evaluated, **self._meters()}
        if (number := self._by_program.get(done.program_id)) is not None:
            self.attempt(number, **facts)

    def _count(self, verdict: str) -> None:
        self.mix[verdict] = self.mix.get(verdict, 0) + 1

    def _meters(self) -> dict[str, Any]:
        """What had been spent when it was measured: the other two axes of the staircase."""
        return {"spent_usd": self.state.spent.usd, "worked_s": self.state.worked_s}

    def work_lost(self, e: ev.WorkLost) -> None:
        self.settle(e.request_id, e.at, f"lost: {e.reason}")

    def expired(self, e: ev.Expired) -> None:
        self._close_span(e.request_id, e.at, f"expired: {e.reason}")

    def judged(self, e: ev.Judged) -> None:
        number = self._cycle[e.node_id][e.attempt]
        gain = rows.triple(e.versus_parent)
        self.attempt(number, improved=e.improved, beats_parent=e.beats_parent, best=e.new_best, gain=gain)

    def cycle_closed(self, e: ev.CycleClosed) -> None:
        self._cycle.pop(e.node_id, None)

    def commanded(self, e: ev.Commanded) -> None:
        match e.command:
            case ev.Note(text, node_id, program_id):
                self._remark(e, text, node_id, program_id)
            case ev.Review(program_id, accept, text):
                self._remark(e, text, None, program_id, accept=accept)
                if (number := self._by_program.get(program_id)) is not None:
                    self.attempt(number, review=accept)

    def _remark(
        self, e: ev.Commanded, text: str, node_id: str | None, program_id: str | None, accept: bool | None = None
    ) -> None:
        self.remarks.append(
            {
                "i": len(self.remarks), "seq": self.seq, "at": e.at, "author": rows.cut(e.author, 80),
                "text": rows.cut(text, rows.LONG), "node": node_id, "program": program_id, "accept": accept,
            }
        )  # fmt: skip


def _touched(before: State, after: State, event: ev.AnyEvent) -> Iterable[str]:
    """Nodes whose row is not what it was."""
    ids = set(rows.changed_ids(before.tree, after.tree)) if isinstance(event, _EDITS) else set()
    match event:
        case ev.Asked(request=request):
            ids.add(request.node_id)
        case ev.Received() | ev.Written() | ev.WriteFailed() | ev.Evaluated():
            if pending := before.pending.get(event.request_id):
                ids.add(pending.request.node_id)
        case ev.Judged(node_id=id) | ev.CycleClosed(node_id=id) | ev.Submitted(node_id=id):
            ids.add(id)
    return ids


_EDITS = (ev.Planned, ev.CycleClosed, ev.Submitted, ev.Commanded)
_HANDLERS: dict[type[ev.Event], Callable[[Projection, Any], None]] = {
    ev.Asked: Projection.asked,
    ev.Leased: Projection.leased,
    ev.Expired: Projection.expired,
    ev.Received: Projection.received,
    ev.Planned: Projection.planned,
    ev.PlanRefused: Projection.plan_refused,
    ev.PlanAbandoned: Projection.plan_abandoned,
    ev.Written: Projection.written,
    ev.WriteFailed: Projection.write_failed,
    ev.Evaluated: Projection.evaluated,
    ev.WorkLost: Projection.work_lost,
    ev.Judged: Projection.judged,
    ev.CycleClosed: Projection.cycle_closed,
    ev.Submitted: Projection.submitted,
    ev.Commanded: Projection.commanded,
}
