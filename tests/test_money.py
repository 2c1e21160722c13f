"""What a run spends, whatever happens to its workers: the real core, on a real SQLite store.

Workers that share nothing but the store take work, send calls to a provider that charges at once, lose replies, stall
until others have taken over, and crash between any two steps. The provider's own bill is the truth that is held
against the books.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ksearch import events as ev
from ksearch.budget import tokens_committed, usd_committed
from ksearch.drivers import Answer, Desk, Job, drive
from ksearch.errors import Unavailable
from ksearch.fold import fold
from ksearch.protocol import Budget, Cost, Done, Holder, Kind, Lost, Plan, Refusal, Reply, Request, SearchConfig
from ksearch.run import Run
from ksearch.state import State
from ksearch.store import blob_name, open_store
from ksearch.testing.fakes import FakeEvaluator, FakePlanner, FakeWriter
from ksearch.types import Action, Evaluation, Insert, Program, Verdict

WORST = Cost(100, 0.50)  # what a call can cost at most
LEASE_S = 10.0
CENT = 1e-9


@dataclass
class Worker:
    """One process: it knows its own run and what it has in hand, and nothing else."""

    run: Run
    holder: Holder
    stage: str = "idle"
    request: Request = field(default_factory=lambda: Request("", Kind.PLAN, ""))
    bill: Cost = field(default_factory=Cost)  # what the provider has charged for the call that is out


class Spending(RuleBasedStateMachine):
    @initialize(
        workers=st.sampled_from([4, 3, 2, 1]),
        limits=st.sampled_from([(450, None), (None, 2.3), (250, 1.9), (800, None), (99, 9.0)]),
        reserve=st.sampled_from([WORST, WORST, WORST, Cost(40, 0.2), Cost()]),
        width=st.sampled_from([3, 1]),
        writers=st.sampled_from([(), ("ann", "bob")]),
    )
    def begin(
        self,
        workers: int,
        limits: tuple[int | None, float | None],
        reserve: Cost,
        width: int,
        writers: tuple[str, ...],
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.now, self.lives = 0.0, 0
        self.stores = [open_store(Path(self.folder.name) / "runs.db") for _ in range(2)]
        budget = Budget(6, tokens=limits[0], usd=limits[1])
        config = SearchConfig(budget, 2, max_active=2, width=width, reserve=reserve, writers=writers, bandit=True)
        self.config, self.full = config, reserve == WORST
        self.viewer = Run.create(self.stores[0], "r", config, clock=lambda: self.now)
        self.log: list[ev.Event] = []
        self.viewer.watchers.append(lambda event, _: self.log.append(event))
        self.workers = [self.hired() for _ in range(workers)]
        self.billed: list[Cost] = []  # by the provider
        self.arrived: list[tuple[str, bytes]] = []
        self.paid: list[Cost] = []  # replies, at what the books can know of their price

    def hired(self) -> Worker:
        self.lives += 1
        return Worker(Run(self.stores[1], "r", lambda: self.now), Holder(f"worker {self.lives}"))

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            assert fold(self.viewer.log()) == self.viewer.refresh()
            for store in self.stores:
                store.close()
            self.folder.cleanup()

    def having(self, stage: str) -> list[Worker]:
        """Workers that have nothing in hand, a request, a call that is out, or a reply (or a measurement) to tell."""
        return [w for w in self.workers if w.stage == stage]

    # --- what happens ---

    @precondition(lambda self: bool(self.having("idle")))
    @rule(data=st.data(), gap=st.floats(0, 1))
    def take(self, data: st.DataObject, gap: float) -> None:
        worker = data.draw(st.sampled_from(self.having("idle")))
        self.now += gap
        got = worker.run.take(worker.holder, lease_s=LEASE_S)
        if isinstance(got, Request):
            known = got.kind is Kind.EVALUATE or worker.run.received(got.id) is not None
            worker.request, worker.stage = got, "replied" if known else "leased"

    @precondition(lambda self: bool(self.having("leased")))
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.5, 1.0]))
    def send(self, data: st.DataObject, share: float) -> None:
        worker = data.draw(st.sampled_from(self.having("leased")))
        worker.bill, worker.stage = Cost(int(WORST.tokens * share), (WORST.usd or 0) * share), "sent"
        self.billed.append(worker.bill)

    @precondition(lambda self: bool(self.having("sent")))
    @rule(data=st.data(), known=st.booleans())
    def reply_arrives(self, data: st.DataObject, known: bool) -> None:
        worker = data.draw(st.sampled_from(self.having("sent")))
        raw = f"reply {len(self.arrived)} to {worker.request.id}".encode()
        worker.run.receive(worker.request.id, raw, worker.bill if known else replace(worker.bill, usd=None))
        self.arrived.append((worker.request.id, raw))
        self.paid.append(worker.bill if known else replace(worker.bill, usd=self.config.reserve.usd))
        worker.stage = "replied"

    @precondition(lambda self: bool(self.having("replied")))
    @rule(data=st.data(), number=st.integers(0, 9), fails=st.sampled_from([False, False, False, True]))
    def tell(self, data: st.DataObject, number: int, fails: bool) -> None:
        worker = data.draw(st.sampled_from(self.having("replied")))
        worker.run.tell(worker.request.id, said(worker.request, number, fails), worker.holder)
        worker.stage = "idle"

    @precondition(lambda self: bool(self.having("sent")))
    @rule(data=st.data())
    def reply_is_lost(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.having("sent")))
        worker.run.tell(worker.request.id, Lost("the connection was cut", billed=True), worker.holder)
        worker.stage = "idle"

    @precondition(lambda self: bool(self.having("leased")))
    @rule(data=st.data())
    def provider_cannot_be_reached(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.having("leased")))
        worker.run.tell(worker.request.id, Lost("no connection", billed=False), worker.holder)
        worker.stage = "idle"

    @precondition(lambda self: len(self.having("idle")) < len(self.workers))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """In whatever step: what it had in hand is gone, with the reply that was on its way."""
        at = data.draw(st.sampled_from([i for i, w in enumerate(self.workers) if w.stage != "idle"]))
        self.workers[at] = self.hired()

    @precondition(lambda self: bool(self.having("idle")) and len(self.having("idle")) < len(self.workers))
    @rule(data=st.data())
    def others_stall_until_somebody_takes_over(self, data: st.DataObject) -> None:
        self.now += LEASE_S
        self.take(data=data, gap=1.0)

    @precondition(lambda self: bool(self.viewer.state.paused))
    @rule()
    def somebody_resumes(self) -> None:
        self.viewer.command(ev.Resume(), "eve")

    # --- what holds at every moment ---

    @invariant()
    def the_books_are_right(self) -> None:
        state = self.viewer.refresh()
        self.no_limit_is_overshot(state)
        self.every_reply_that_arrived_is_in_the_store()
        self.a_reservation_without_a_reply_counts_as_spent(state)

    def no_limit_is_overshot(self, state: State) -> None:
        budget = self.config.budget
        over = 0 if self.full else len(self.workers)  # calls in flight, at most one for each worker
        if budget.tokens is not None:
            assert tokens_committed(state) <= budget.tokens + over * WORST.tokens
            assert not self.full or sum(bill.tokens for bill in self.billed) <= budget.tokens
        if budget.usd is not None:
            assert usd_committed(state) <= budget.usd + over * (WORST.usd or 0) + CENT
            assert not self.full or sum(bill.usd or 0 for bill in self.billed) <= budget.usd + CENT

    def every_reply_that_arrived_is_in_the_store(self) -> None:
        received = [e for e in self.log if isinstance(e, ev.Received)]
        assert [(e.request_id, e.raw) for e in received] == [(id, blob_name(raw)) for id, raw in self.arrived]
        assert not received or self.viewer.store.get_blob(received[-1].raw) == self.arrived[-1][1]

    def a_reservation_without_a_reply_counts_as_spent(self, state: State) -> None:
        """The books are the replies' prices, and what was set aside for each lease that brought none."""
        calls, reserve = Counter[str](), self.config.reserve
        asked = (e.request for e in self.log if isinstance(e, ev.Asked))
        models = {request.id for request in asked if request.kind is not Kind.EVALUATE}
        for event in self.log:
            match event:
                case ev.Leased(request_id=id, reserved=held) if id in models and held == reserve:
                    calls[id] += 1
                case ev.Received(request_id=id):
                    calls[id] -= 1
                case ev.WorkLost(request_id=id, billed=False) if id in models:
                    calls[id] -= 1
        assert min(calls.values(), default=0) >= 0
        without = sum(calls.values())
        assert tokens_committed(state) == sum(c.tokens for c in self.paid) + without * reserve.tokens
        told = sum(c.usd or 0 for c in self.paid) + without * (reserve.usd or 0)
        assert abs(usd_committed(state) - told) < 1e-6
        if self.full:
            assert tokens_committed(state) >= sum(bill.tokens for bill in self.billed)


def said(request: Request, number: int, fails: bool) -> Reply:
    match request.kind:
        case Kind.PLAN if fails:
            return Refusal(Verdict.UNPARSABLE, "no plan in it")
        case Kind.PLAN:
            return Plan(tuple(Insert("root", Action(f"idea {number}.{i}"), 0.5) for i in (0, 1)))
        case Kind.WRITE if fails:
            return Refusal(Verdict.TRUNCATED, "cut off")
        case Kind.WRITE:
            return Program({"k.cpp": f"{request.id} {number}"}, "k.cpp::run", "cpp")
    return Evaluation(request.program_id or "", Verdict.WRONG_VALUES, "17 values differ")


Spending.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestSpending = Spending.TestCase


# --- threads -------------------------------------------------------------------------------------------------------


@dataclass
class Charging:
    """A planner or writer whose calls are charged for, answered or not; every fourth reply never comes."""

    inner: FakePlanner | FakeWriter
    bills: list[Cost]
    draw: random.Random = field(default_factory=lambda: random.Random(3))

    def prompt(self, job: Job) -> bytes:
        return self.inner.prompt(job)

    def answer(self, job: Job, prompt: bytes) -> Answer:
        answer = self.inner.answer(job, prompt)
        share = self.draw.random()
        cost = Cost(int(WORST.tokens * share), (WORST.usd or 0) * share)
        self.bills.append(cost)
        if self.draw.random() < 0.25:
            raise Unavailable("the connection was cut")
        return replace(answer, cost=cost)

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        return self.inner.read(job, raw, finish)


def test_threads_that_share_a_store_do_not_overshoot_together(tmp_path: Path) -> None:
    limit = Budget(60, tokens=3000, usd=12.0)
    bills: list[Cost] = []
    with open_store(tmp_path / "runs.db") as store:
        config = SearchConfig(limit, 4, max_active=4, width=4, max_retries=20, reserve=WORST)
        run = Run.create(store, "r", config)

        def work() -> None:
            with open_store(tmp_path / "runs.db") as own:
                desk = Desk(Charging(FakePlanner(), bills), Charging(FakeWriter(), bills), FakeEvaluator())
                drive(Run(own, "r"), desk)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert run.refresh().ended, Done
        state = fold(run.log()[:1])
        for event in run.log()[1:]:
            state = fold([event], state)
            assert tokens_committed(state) <= 3000
            assert usd_committed(state) <= 12.0 + CENT
    spent = sum(bill.tokens for bill in bills)
    assert len(bills) > 20
    assert spent <= state.spent.tokens <= 3000
