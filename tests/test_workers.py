"""Many at once over a real store: any interleaving, interruption and failure ends with the same accounting."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ksearch import events as ev
from ksearch.drivers import Answer, Desk, Errand, Job, Measured, Outcome, Pools, drive, drive_many
from ksearch.errors import EvaluatorError, TaskError, Unavailable
from ksearch.fold import fold
from ksearch.protocol import Budget, Cost, Done, Holder, Kind, Lost, Request, SearchConfig, Wait
from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator, FakePlanner, FakeWriter, fake_desk
from ksearch.types import Program

CONFIG = SearchConfig(Budget(30), stagnation=3, max_active=4, width=2, reserve=Cost(2000, 0.02))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


def pools(minds: int = 8, benches: int = 4):
    return lambda: Pools(minds, benches)


def check_accounts(run: Run, calls: list[str] | None = None) -> None:
    """What must hold of a run that has ended, whatever happened on the way."""
    log = run.log()
    assert fold(log) == run.state
    assert run.state.ended == "budget: evaluations"
    assert run.state.evaluated == run.state.config.budget.evaluations
    measured = Counter(e.evaluation.program_id for e in log if isinstance(e, ev.Evaluated))
    assert set(measured.values()) == {1}
    assert set(Counter(e.request_id for e in log if isinstance(e, ev.Received)).values()) == {1}
    assert not any(p.lease for p in run.state.pending.values())
    assert not run.state.cycles
    if calls is not None:
        assert set(Counter(calls).values()) == {1}


class Late(Desk):
    """Whoever is sent comes back at a moment of its own; one in `losing` comes back with nothing."""

    def fetch(self, errand: Errand) -> Outcome:
        request = errand.job.request
        draw = random.Random(f"{request.id} {len(errand.job.state.pending[request.id].lost)}")
        time.sleep(draw.random() * 0.002)
        return super().fetch(errand) if draw.random() > 0.1 else Lost("the worker went away")


@settings(max_examples=12, deadline=None, phases=[Phase.generate])  # shrinking threads takes minutes
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_an_interleaved_run_replays_to_the_same_state(
    seed: int, minds: int, benches: int, active: int, width: int
) -> None:
    config = SearchConfig(Budget(20), stagnation=2, max_active=active, width=width, max_retries=9)
    run = Run.create(open_store("sqlite:///:memory:"), "run", config)
    desk = fake_desk(seed)
    assert drive_many(run, Late(desk.planner, desk.writer, desk.evaluator), pools(minds, benches)) == Done(
        "budget: evaluations"
    )
    check_accounts(run)


def test_one_at_a_time_is_the_straight_line(store: Store) -> None:
    config = SearchConfig(Budget(20), stagnation=3)
    straight, many = Run.create(store, "straight", config), Run.create(store, "many", config)
    drive(straight, fake_desk())
    drive_many(many, fake_desk(), pools(1, 1))
    plain = [e for e in straight.log() if not isinstance(e, ev.Leased)]
    assert [type(e) for e in plain] == [type(e) for e in many.log() if not isinstance(e, ev.Leased)]
    assert many.state.tree == straight.state.tree
    assert many.state.evaluations == straight.state.evaluations


class Counting(Desk):
    """Notes how many are out at once, by kind."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.planner, desk.writer, desk.evaluator)
        object.__setattr__(self, "now", Counter())
        object.__setattr__(self, "most", Counter())
        object.__setattr__(self, "lock", threading.Lock())

    def fetch(self, errand: Errand) -> Outcome:
        kind = "bench" if errand.job.request.kind is Kind.EVALUATE else "mind"
        with self.lock:
            self.now[kind] += 1
            self.most[kind] = max(self.most[kind], self.now[kind])
        time.sleep(0.05)
        with self.lock:
            self.now[kind] -= 1
        return super().fetch(errand)


def test_each_pool_is_used_and_never_more_than_full(store: Store) -> None:
    run = Run.create(store, "run", CONFIG)
    desk = Counting(fake_desk(note=lambda _: None))
    drive_many(run, desk, pools(3, 2))
    assert desk.most == {"mind": 3, "bench": 2}
    check_accounts(run)


def test_what_is_out_when_the_driver_is_told_to_stop_comes_home_and_is_recorded(store: Store) -> None:
    calls: list[str] = []
    run = Run.create(store, "run", CONFIG)
    stopped = drive_many(run, Late(*_three(calls)), pools(), lambda: len(calls) > 20)
    assert stopped == Wait("stopped")
    assert not any(p.lease or p.received for p in run.state.pending.values())
    assert drive_many(Run(store, "run"), fake_desk(note=calls.append), pools()) == Done("budget: evaluations")
    check_accounts(Run(store, "run"), calls)


def _three(calls: list[str]):
    return FakePlanner(note=calls.append), FakeWriter(note=calls.append), FakeEvaluator(note=calls.append)


class Slow(FakeWriter):
    """Answers only when it is let."""

    go = threading.Event()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        self.go.wait(10)
        return super().answer(job, prompt)


def test_a_second_interruption_leaves_at_once_and_gives_back_what_was_held(store: Store) -> None:
    run = Run.create(store, "run", CONFIG)
    asked = 0

    def interrupt() -> bool:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        drive_many(run, Desk(FakePlanner(), Slow(), FakeEvaluator()), pools(), interrupt)
    assert run.state.pending
    assert not any(p.lease for p in run.state.pending.values())
    Slow.go.set()
    drive_many(run, fake_desk(), pools())
    check_accounts(run)


class Broken(FakeEvaluator):
    def evaluate(self, program: Program, against: object) -> Measured | Lost:
        raise EvaluatorError("the compiler is gone: install it")


def test_what_one_worker_cannot_mend_is_raised_once_the_others_are_home(store: Store) -> None:
    calls: list[str] = []
    run = Run.create(store, "run", CONFIG)
    with pytest.raises(EvaluatorError, match="install it"):
        drive_many(run, Desk(*_three(calls)[:2], Broken()), pools())
    received = sum(isinstance(e, ev.Received) for e in run.log())
    assert received == len(calls), "each reply that was paid for is in the log"
    drive_many(run, fake_desk(note=calls.append), pools())
    check_accounts(run, calls)


class Forgetful(FakePlanner):
    """Works for a while; then its prompts cannot be made."""

    def prompt(self, job: Job) -> bytes:
        if job.state.evaluated > 8:
            raise TaskError("the task's folder is gone: put it back")
        return super().prompt(job)


def test_what_keeps_work_from_being_given_out_is_raised_once_those_at_work_are_home(store: Store) -> None:
    calls: list[str] = []
    run = Run.create(store, "run", CONFIG)
    minds = Forgetful(note=calls.append), FakeWriter(note=calls.append)
    with pytest.raises(TaskError, match="put it back"):
        drive_many(run, Late(*minds, FakeEvaluator(note=calls.append)), pools())
    assert not any(p.lease for p in run.state.pending.values())
    assert run.state.evaluated > 8
    drive_many(run, fake_desk(note=calls.append), pools())
    check_accounts(run, calls)


def test_a_watcher_that_fails_costs_no_reply(store: Store) -> None:
    """Such as a terminal that is closed while the run is shown on it."""
    calls: list[str] = []
    run = Run.create(store, "run", CONFIG)

    def show(event: ev.Event, _: object) -> None:
        if isinstance(event, ev.Evaluated):
            raise BrokenPipeError

    run.watchers.append(show)
    with pytest.raises(BrokenPipeError):
        drive_many(run, Desk(*_three(calls)), pools())
    run.watchers.clear()
    drive_many(run, fake_desk(note=calls.append), pools())
    check_accounts(run, calls)


class Down(FakeWriter):
    def answer(self, job: Job, prompt: bytes) -> Answer:
        raise Unavailable("connection refused")


def test_a_model_that_is_down_pauses_the_run(store: Store) -> None:
    run = Run.create(store, "run", CONFIG)
    stopped = drive_many(run, Desk(FakePlanner(), Down(), FakeEvaluator()), pools())
    assert isinstance(stopped, Wait)
    assert "connection refused" in stopped.why
    run.command(ev.Resume(), "ada")
    drive_many(run, fake_desk(), pools())
    check_accounts(run)


def test_two_drivers_with_many_workers_share_a_run(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    Run.create(store, "run", CONFIG)

    def one() -> None:
        desk = fake_desk()
        drive_many(Run(store, "run"), Late(desk.planner, desk.writer, desk.evaluator), pools(4, 2))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    check_accounts(Run(store, "run"))


def test_where_models_answer_elsewhere_it_measures_and_says_what_is_wanted(store: Store) -> None:
    run = Run.create(store, "run", CONFIG)
    only = frozenset({Kind.EVALUATE})
    desk, agent = fake_desk(), Holder("agent")
    for _ in range(200):
        got = drive_many(run, desk, pools(), kinds=only)
        if isinstance(got, Done):
            break
        assert "wanted" in got.why or "out" in got.why
        while isinstance(taken := run.take(agent, frozenset({Kind.PLAN, Kind.WRITE})), Request):
            desk.serve(run, taken, agent)
    check_accounts(run)
