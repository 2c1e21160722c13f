"""Short stories of a run, told in its own terms: for the tests of single rules."""

from __future__ import annotations

from typing import Any

from ksearch import events as ev
from ksearch import search, steer
from ksearch.fold import apply
from ksearch.protocol import Budget, Cost, Done, Holder, Kind, Lost, Plan, Refusal, Reply, Request, SearchConfig, Wait
from ksearch.state import State
from ksearch.types import (
    Action,
    Evaluation,
    Insert,
    Node,
    NodeStatus,
    Program,
    Prune,
    Ratio,
    TreeEdit,
    Update,
    Verdict,
)

ANN, BOB = Holder("ann", pid=1), Holder("bob", pid=2)
OPEN, ACTIVE, SOLVED, REJECTED, PRUNED = NodeStatus


def program(text: object) -> Program:
    return Program({"k.cpp": str(text)}, "k.cpp::run", "cpp")


def pid(text: object) -> str:
    return program(text).id


def ratio(value: float, noise: float = 0.001) -> Ratio:
    return Ratio(value, value * (1 - noise), value * (1 + noise))


def passed(text: object, speedup: float | Ratio, device: str = "", **against: float | Ratio) -> Evaluation:
    """Program `text` passes. `against`: how much faster it is than other programs, by their texts."""
    ratios = {pid(k): v if isinstance(v, Ratio) else ratio(v) for k, v in against.items()}
    over = speedup if isinstance(speedup, Ratio) else ratio(speedup)
    return Evaluation(pid(text), Verdict.PASSED, latency_ms=1.0, speedup=over, against=ratios, device=device)


def failed(text: object, verdict: Verdict = Verdict.WRONG_VALUES) -> Evaluation:
    return Evaluation(pid(text), verdict, reason="17 of 4096 values differ")


def add(
    title: str, value: float = 0.5, under: str = "root", name: str = "", difficulty: int = 3, enabling: bool = False
) -> Insert:
    return Insert(under, Action(title, difficulty=difficulty, enabling=enabling), value, name)


class Story:
    """A run that a test tells step by step. Its root has no plan yet; time stands still unless it is moved."""

    def __init__(self, **rules: Any) -> None:
        self.state, self.log, self.now = State(), list[ev.Event](), 0.0
        self.record([ev.RunStarted(config=SearchConfig(**rules))])

    def record(self, events: list[ev.Event]) -> list[ev.Event]:
        for event in events:
            self.log.append(event)
            self.state = apply(self.state, event)
        return events

    # --- driver ---

    def asks(self, *kinds: Kind) -> Request | Wait | Done:
        return search.ask(self.state, self.now, frozenset(kinds) if kinds else search.ALL_KINDS)

    def hand_out(self, kind: Kind | None = None, holder: Holder = ANN, seconds: float = 100.0) -> Request:
        """What is wanted next (it must be of this kind), leased."""
        request = self.asks()
        assert isinstance(request, Request), request
        assert kind is None or request.kind is kind, request
        self.record(search.lease(self.state, request, holder, self.now, seconds))
        return request

    def tell(self, request: Request, reply: Reply, holder: Holder | None = None) -> list[ev.Event]:
        return self.record(search.tell(self.state, request.id, reply, self.now, holder))

    def pays(self, request: Request, tokens: int = 0, usd: float | None = 0.0) -> None:
        self.record([ev.Received(at=self.now, request_id=request.id, raw="blob", cost=Cost(tokens, usd))])

    def passes(self, seconds: float, dead: Holder | None = None) -> list[ev.Event]:
        self.now += seconds
        return self.record(search.due(self.state, self.now, lambda holder: holder == dead))

    def loses(self, times: int, kind: Kind) -> list[ev.Event]:
        events: list[ev.Event] = []
        for _ in range(times):
            events = self.tell(self.hand_out(kind), Lost("the machine went away"))
        return events

    # --- workers ---

    def plan(self, *edits: TreeEdit) -> list[ev.Event]:
        return self.tell(self.hand_out(Kind.PLAN), Plan(edits))

    def write(self, text: object) -> Request:
        request = self.hand_out(Kind.WRITE)
        self.tell(request, program(text))
        return request

    def measure(self, text: object, speedup: float | Ratio | None, **against: float | Ratio) -> list[ev.Event]:
        """Measure program `text`; a speedup of None: it fails."""
        request = self.hand_out(Kind.EVALUATE)
        assert request.program_id == pid(text)
        return self.tell(request, failed(text) if speedup is None else passed(text, speedup, **against))

    def attempt(self, text: object, speedup: float | Ratio | None, **against: float | Ratio) -> list[ev.Event]:
        self.write(text)
        return self.measure(text, speedup, **against)

    def fails(self, times: int) -> list[ev.Event]:
        """So many attempts in a row that bring no program at all."""
        events: list[ev.Event] = []
        for _ in range(times):
            events = self.tell(self.hand_out(Kind.WRITE), Refusal(Verdict.UNPARSABLE, "no code block"))
        return events

    # --- people ---

    def command(self, wanted: ev.Command) -> list[ev.Event]:
        return self.record(steer.command(self.state, wanted, "eve", self.now))

    def submit(self, text: object, node: str = "root", **more: Any) -> list[ev.Event]:
        return self.record(steer.submit(self.state, program(text), "eve", self.now, node, **more))

    # --- what is to be seen ---

    def node(self, id: str) -> Node:
        return self.state.tree[id]

    def statuses(self) -> dict[str, NodeStatus]:
        return {id: n.status for id, n in self.state.tree.items() if id != "root"}

    def last(self, kind: type[ev.Event]) -> Any:
        return next(e for e in reversed(self.log) if isinstance(e, kind))

    def count(self, kind: type[ev.Event]) -> int:
        return sum(isinstance(e, kind) for e in self.log)


def planned(*edits: TreeEdit, **rules: Any) -> Story:
    """A run whose first plan has been accepted. Ten evaluations and K = 3 unless told otherwise."""
    story = Story(**{"budget": Budget(10), "stagnation": 3, **rules})
    story.plan(*edits)
    return story


def child_at_work(enabling: bool = False, **rules: Any) -> Story:
    """n1 is solved by program "parent" with a speedup of 2; n2 under it is next."""
    story = planned(add("first"), **{"budget": Budget(100), **rules})
    story.attempt("parent", 2)
    story.fails(story.state.config.stagnation)
    story.plan(add("second", under="n1", enabling=enabling))
    return story


def kinds(events: list[ev.Event]) -> list[str]:
    return [type(e).__name__ for e in events]


__all__ = [
    "ACTIVE",
    "ANN",
    "BOB",
    "OPEN",
    "PRUNED",
    "REJECTED",
    "SOLVED",
    "Prune",
    "Story",
    "Update",
    "add",
    "child_at_work",
    "failed",
    "kinds",
    "passed",
    "pid",
    "planned",
    "program",
    "ratio",
]
