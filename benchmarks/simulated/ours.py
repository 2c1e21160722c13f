"""Our policy: the real core (`ksearch.search` and `ksearch.fold`), driven in memory by a clock that is a number."""

from __future__ import annotations

import heapq
import json
import math
import random
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch import search
from ksearch import tree as trees
from ksearch.fold import fold
from ksearch.protocol import Budget, Done, Holder, Kind, Plan, Reply, Request, SearchConfig, Wait
from ksearch.state import State
from ksearch.types import Action, Evaluation, Insert, Node, NodeStatus, Program, Ratio, TreeEdit, Update, Verdict
from simulated.world import HALF_WIDTH, NOISE, Mind, Solution, Task, Writer, hesitation

MODEL_S, EVALUATION_S = 60.0, 10.0  # one model call, however many are made at once; one evaluation, one at a time
BENCHES = 3  # programs at the evaluator: one is timed, two are built or wait
FOREVER_S = 1e12
ME = Holder("simulated")


@dataclass(frozen=True, slots=True)
class Found:
    """A search by our policy. `curve`: true log speed of its best by evaluations; `hours`: when each was measured."""

    curve: list[float]
    hours: list[float]
    busy: float  # share of the time that something was being measured


@dataclass
class Simulation:
    """One search from its first plan to the end of its budget."""

    task: Task
    mind: Mind
    config: SearchConfig
    rng: random.Random
    parallel: int = 1  # model calls at once; beside them, programs are measured one at a time. 1: one thing at a time

    state: State = field(default_factory=State)
    now: float = 0.0
    free_at: float = 0.0  # when the one place to measure is free
    solutions: dict[str, Solution | None] = field(default_factory=lambda: {"": {}})
    found: Found = field(default_factory=lambda: Found([], [], 0.0))

    def run(self) -> Found:
        self.state = fold([ev.RunStarted(config=self.config)])
        out: list[tuple[float, int, Request, Reply]] = []
        number = 0
        while True:
            while isinstance(request := self._ask([r.kind for _, _, r, _ in out]), Request):
                self.state = fold(search.lease(self.state, request, ME, self.now, FOREVER_S), self.state)
                heapq.heappush(out, (self._ends(request), number, request, self._reply(request)))
                number += 1
            if not out:
                busy = EVALUATION_S * len(self.found.curve) / self.now
                return Found(self.found.curve, self.found.hours, busy)
            self.now, _, request, reply = heapq.heappop(out)
            self._tell(request, reply)

    def _ask(self, out: list[Kind]) -> Request | Wait | Done:
        """What can be handed out while these are out, as `ksearch.drivers.workers` does it for one GPU."""
        benches = out.count(Kind.EVALUATE)
        if self.parallel == 1:
            return search.ask(self.state, self.now) if not out else Wait("out")
        kinds = {Kind.PLAN, Kind.WRITE} if len(out) - benches < self.parallel else set()
        kinds |= {Kind.EVALUATE} if benches < BENCHES else set()
        return search.ask(self.state, self.now, frozenset(kinds)) if kinds else Wait("out")

    def _ends(self, request: Request) -> float:
        if request.kind is not Kind.EVALUATE:
            return self.now + MODEL_S
        self.free_at = max(self.now, self.free_at) + EVALUATION_S
        return self.free_at

    def _tell(self, request: Request, reply: Reply) -> None:
        events = search.tell(self.state, request.id, reply, self.now, ME)
        self.state = fold(events, self.state)
        if request.kind is Kind.EVALUATE:
            best = self.task.log_speed(self._solution(self.state.best_id))
            self.found.curve.append(max(0.0, best))  # while nothing beats it, the baseline is what one has
            self.found.hours.append(self.now / 3600)
        for event in events:
            if isinstance(event, ev.CycleClosed) and event.gain:
                self.mind.learn(idea_of(self.state.tree[event.node_id]), math.log(event.gain.value))

    # --- who answers ---

    def _reply(self, request: Request) -> Reply:
        if request.kind is Kind.PLAN:
            return self._plan()
        return self._write(request) if request.kind is Kind.WRITE else self._evaluate(request)

    def _solution(self, program_id: str | None) -> Solution:
        return self.solutions[program_id or ""] or {}

    def _write(self, request: Request) -> Program:
        """The action's idea on the base, or that idea done better where it is there already."""
        idea, base = idea_of(self.state.tree[request.node_id]), self._solution(request.program_id)
        writer = Writer(self.task, self.rng)
        found = writer.improve(base, idea) if idea in base else writer.carry_out(base, [idea])
        text = json.dumps([request.id, sorted((found or {}).items())])
        program = Program({"k.py": text}, "k.py::run", "python")
        self.solutions[program.id] = found
        return program

    def _evaluate(self, request: Request) -> Evaluation:
        program_id = request.program_id or ""
        if self.solutions[program_id] is None:
            return Evaluation(program_id, Verdict.WRONG_VALUES, "simulated")
        mine = self.task.log_speed(self._solution(program_id))
        ratios = {id: self._ratio(mine - self.task.log_speed(self._solution(id))) for id in request.against}
        return Evaluation(
            program_id, Verdict.PASSED, latency_ms=math.exp(-mine), speedup=self._ratio(mine), against=ratios
        )

    def _ratio(self, gain: float) -> Ratio:
        seen = gain + self.rng.gauss(0, NOISE)
        return Ratio(math.exp(seen), math.exp(seen - HALF_WIDTH), math.exp(seen + HALF_WIDTH))

    def _plan(self) -> Plan:
        """The best (node, idea) pairs that are not in the tree yet, and V of the open ones by what is known now."""
        tree = self.state.tree
        taken = {(n.parent_id, idea_of(n)) for n in tree.values() if n.parent_id}
        active = {idea_of(n) for n in tree.values() if n.status is NodeStatus.ACTIVE}
        open_now = [n for n in tree.values() if n.status is NodeStatus.OPEN]
        values = {n.id: self._value(trees.parent_of(n), idea_of(n)) for n in open_now}
        edits: list[TreeEdit] = [Update(n.id, value=values[n.id]) for n in open_now if values[n.id] != n.value]
        pairs = [
            (self._outlook(node.id, idea) + hesitation(self.rng), node.id, idea)
            for node in tree.values()
            if node.status is NodeStatus.SOLVED
            for idea in self.task.open_to(self._solution(node.program_id))
            if (node.id, idea) not in taken and idea not in active and self.mind.estimate(idea) > 0
        ]
        for _, node_id, idea in sorted(pairs, reverse=True)[: self.config.max_new_nodes]:
            edits.append(Insert(node_id, self._action(idea), self._value(node_id, idea)))
        return Plan(tuple(edits))

    def _action(self, idea: int) -> Action:
        effect, promise = self.mind.effect[idea], self.mind.promise[idea]
        return Action(f"idea {idea}", predicted_speedup=min(1e6, math.exp(effect)), enabling=effect < 0 < promise)

    def _outlook(self, node_id: str, idea: int) -> float:
        """Where a program may come to that is built on this node: its speed, and what the idea is thought to bring."""
        speedup = self.state.tree[node_id].speedup
        return (math.log(speedup.value) if speedup else 0.0) + self.mind.estimate(idea)

    def _value(self, node_id: str, idea: int) -> float:
        return 1 / (1 + math.exp(-self._outlook(node_id, idea)))


def idea_of(node: Node) -> int:
    return int(node.action.title.removeprefix("idea "))


def ours(
    task: Task,
    mind: Mind,
    evaluations: int,
    rng: random.Random,
    parallel: int = 1,
    max_active: int = 1,
    width: int = 1,
    passing_weight: int | None = None,
) -> Found:
    """K-Search with the product's own defaults; `parallel` model calls at once."""
    config = SearchConfig(Budget(evaluations), max_active=max_active, width=width, passing_weight=passing_weight)
    return Simulation(task, mind, config, rng, parallel).run()
