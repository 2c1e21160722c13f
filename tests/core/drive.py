"""A pool of unreliable workers and restless people, for property tests of the core."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch import search, steer
from ksearch import tree as trees
from ksearch.errors import InvalidCommand
from ksearch.fold import apply
from ksearch.protocol import Budget, Cost, Done, Holder, Kind, Lost, Plan, Refusal, Reply, Request, SearchConfig, Wait
from ksearch.state import State
from ksearch.types import Action, Evaluation, Insert, Program, Prune, Ratio, Update, Verdict

A, B = Holder("a", pid=1), Holder("b", pid=2)


def program(text: object) -> Program:
    return Program({"k.cpp": str(text)}, "k.cpp::run", "cpp")


def passed(program_id: str, speedup: float, noise: float = 0.01, **against: float) -> Evaluation:
    """A passing evaluation; `against` gives paired ratios by program id."""
    ratios = {k: ratio(v, noise) for k, v in against.items()}
    return Evaluation(program_id, Verdict.PASSED, latency_ms=1 / speedup, speedup=ratio(speedup, noise), against=ratios)


def ratio(value: float, noise: float = 0.01) -> Ratio:
    return Ratio(value, value * (1 - noise), value * (1 + noise))


@dataclass
class Pool:
    """Answers out of order; loses, repeats, delays and mangles; people interfere. All by one seed."""

    seed: int
    config: SearchConfig
    workers: int = 3
    chaos: float = 0.1
    people: float = 0.05
    log: list[ev.Event] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    told: list[tuple[Request, Reply]] = field(default_factory=list)
    late: list[tuple[Request, Reply]] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.now = 0.0
        self.state = State()
        self.states.append(self.state)
        self.record([ev.RunStarted(config=self.config)])

    def record(self, events: list[ev.Event]) -> None:
        for event in events:
            self.log.append(event)
            self.state = apply(self.state, event)
            self.states.append(self.state)

    def run(self, steps: int = 4000) -> str:
        """Drive to the end. Returns why it ended; fails if it does not end by itself."""
        out: list[tuple[Request, Holder]] = []
        for _ in range(steps):
            self.now += self.rng.random()
            self.record(search.due(self.state, self.now))
            if self.rng.random() < self.people:
                self.interfere()
            answer = self.hand_out(out)
            if isinstance(answer, Done) and not out:
                return answer.why
            if isinstance(answer, Wait) and answer.why.startswith("paused") and not out:
                self.record(steer.command(self.state, ev.Resume(), "driver", self.now))
                continue
            if not out:
                assert isinstance(answer, Wait), (answer, self.state)
                assert answer.until is not None, (answer, self.state)
                self.now = max(self.now, answer.until + 0.001)
                continue
            self.answer(*out.pop(self.rng.randrange(len(out))))
        raise AssertionError("the run does not end")

    def hand_out(self, out: list[tuple[Request, Holder]]) -> Request | Wait | Done:
        answer = search.ask(self.state, self.now)
        while isinstance(answer, Request) and len(out) < self.workers:
            holder = self.rng.choice([A, B])
            self.record(search.lease(self.state, answer, holder, self.now, 5.0))
            self.calls += answer.kind is not Kind.EVALUATE
            out.append((answer, holder))
            answer = search.ask(self.state, self.now)
        return answer

    def answer(self, request: Request, holder: Holder) -> None:
        roll = self.rng.random()
        if roll < self.chaos / 2:  # it never answers: the lease runs out, and perhaps it answers much later
            self.late.append((request, self.reply(request)))
            self.now += 6 * self.rng.random()
            return
        reply = Lost("gone") if roll < self.chaos else self.reply(request)
        self.tell(request, reply, holder)
        if self.told and self.rng.random() < self.chaos:
            again, old = self.rng.choice(self.told)
            assert again.id in self.state.pending or search.tell(self.state, again.id, old, self.now) == []
        if self.late and self.rng.random() < self.chaos:
            self.tell(*self.late.pop(), None)

    def tell(self, request: Request, reply: Reply, holder: Holder | None) -> None:
        if request.kind is not Kind.EVALUATE and not isinstance(reply, Lost) and self.rng.random() < 0.9:
            usd = None if self.rng.random() < 0.2 else self.rng.random() * (self.config.reserve.usd or 0)
            cost = Cost(self.rng.randint(0, self.config.reserve.tokens), usd)
            self.record([ev.Received(at=self.now, request_id=request.id, raw="00", cost=cost)])
        events = search.tell(self.state, request.id, reply, self.now, holder)
        if events and not isinstance(events[0], ev.WorkLost | ev.PlanRefused):
            self.told.append((request, reply))
        self.record(events)

    def reply(self, request: Request) -> Reply:
        if request.kind is Kind.PLAN:
            return self.plan()
        if request.kind is Kind.WRITE:
            if self.rng.random() < 0.1:
                return Refusal(Verdict.UNPARSABLE, "no program in it")
            return program(self.rng.randrange(40))
        assert request.program_id
        if self.rng.random() < 0.4:
            return Evaluation(request.program_id, self.rng.choice([Verdict.COMPILE_ERROR, Verdict.WRONG_VALUES]))
        rivals = {p: self.rng.uniform(0.5, 1.6) for p in request.against if self.rng.random() < 0.9}
        return passed(request.program_id, self.rng.uniform(0.5, 4), **rivals)

    def plan(self) -> Reply:
        ids = list(self.state.tree)
        edits: list[Insert | Update | Prune] = []
        for i in range(self.rng.randint(0, self.config.max_new_nodes + (self.rng.random() < 0.1))):
            parent = self.rng.choice([*ids, "n999"] if self.rng.random() < 0.1 else ids)
            parent = f"local{i - 1}" if i and self.rng.random() < 0.3 else parent
            action = Action("a", difficulty=self.rng.randint(1, 5), enabling=self.rng.random() < 0.2)
            edits.append(Insert(parent, action, self.rng.random(), name=f"local{i}"))
        if self.rng.random() < 0.3:
            edits.append(Update(self.rng.choice(ids), value=self.rng.random()))
        if self.rng.random() < 0.2:
            edits.append(Prune(self.rng.choice(ids)))
        return Plan(tuple(edits))

    def interfere(self) -> None:
        node = self.rng.choice(list(self.state.tree))
        wanted = self.rng.choice(
            [
                ev.Pin(node),
                ev.Boost(node, self.rng.random()),
                ev.PruneNode(node),
                ev.AddAction(node, Action("mine")),
                ev.Note("hm", node),
                ev.Pause(),
                ev.Resume(),
                None,
            ]
        )
        try:
            if wanted is None:
                text = f"submitted {self.rng.randrange(40)}"
                self.record(steer.submit(self.state, program(text), "eve", self.now, node))
            else:
                self.record(steer.command(self.state, wanted, "eve", self.now))
        except InvalidCommand:
            pass


def config(**changes: object) -> SearchConfig:
    base: dict[str, object] = {"budget": Budget(25), "stagnation": 3}
    return SearchConfig(**{**base, **changes})  # type: ignore[arg-type]


def subtree_is_sound(state: State) -> bool:
    return all(trees.parent_of(n) in state.tree for n in state.tree.values() if n.parent_id)
