"""A run over a real store: shared by processes, resumed after a stop, never asking twice for what is stored."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from ksearch import events as ev
from ksearch.drivers import Answer, Desk, Job, drive
from ksearch.errors import Corrupt, InvalidCommand, InvalidReply, Unavailable
from ksearch.holders import is_dead, this_process
from ksearch.protocol import Budget, Cost, Done, Holder, Kind, Lost, Plan, Request, SearchConfig, Wait
from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator, FakePlanner, FakeWriter, RecordedEvaluator, fake_desk
from ksearch.types import Action, Insert, Program

CONFIG = SearchConfig(Budget(20), stagnation=3, reserve=Cost(2000, 0.02))
ME = Holder("me")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


def new_run(store: Store, name: str = "run", config: SearchConfig = CONFIG) -> Run:
    return Run.create(store, name, config, {"task": "none"})


def story(run: Run) -> list[tuple[str, object]]:
    """The log without what may differ between two drivers: leases and times."""
    kept = [e for e in run.log() if not isinstance(e, ev.Leased | ev.Expired)]
    return [(type(e).__name__, {n: getattr(e, n) for n in e.__dataclass_fields__ if n != "at"}) for e in kept]


def test_a_run_with_fakes_goes_to_its_end_and_its_log_gives_the_same_state(store: Store) -> None:
    run = new_run(store)
    assert drive(run, fake_desk()) == Done("budget: evaluations")
    assert run.state.evaluated == 20
    assert run.state.best_id
    assert Run(store, "run").state == run.state
    assert drive(run, fake_desk()) == Done("budget: evaluations")


def test_program_and_record_are_in_the_store_before_the_events_that_name_them(store: Store) -> None:
    run = new_run(store)
    run.watchers.append(
        lambda e, _: (
            (
                [store.get_blob(e.program_id)]
                if isinstance(e, ev.Written)
                else [store.get_blob(e.evaluation.record)]
                if isinstance(e, ev.Evaluated) and e.evaluation.record
                else [store.get_blob(e.raw)]
                if isinstance(e, ev.Received)
                else [store.get_blob(e.prompt)]
                if isinstance(e, ev.Leased) and e.prompt
                else []
            )
            and None
        )
    )
    drive(run, fake_desk())
    assert run.state.best_id
    assert isinstance(run.program(run.state.best_id), Program)


class Interrupted(FakeWriter):
    """Is stopped by Ctrl-C after some answers."""

    left = 3

    def read(self, job: Job, raw: bytes, finish: str) -> object:  # type: ignore[override]
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().read(job, raw, finish)


def test_ctrl_c_between_storing_a_reply_and_reading_it_loses_nothing(store: Store) -> None:
    whole = new_run(store, "whole")
    drive(whole, fake_desk())
    calls: list[str] = []
    run = new_run(store)
    with pytest.raises(KeyboardInterrupt):
        drive(run, Desk(FakePlanner(), Interrupted(note=calls.append), FakeEvaluator()))
    assert not any(p.lease for p in run.state.pending.values()), "what was held is given back"
    assert any(p.received for p in run.state.pending.values()), "the reply is stored"
    again = Run(store, "run")
    drive(again, fake_desk(note=calls.append))
    assert story(again) == story(whole)
    paid = [c for c in calls if "evaluate" not in c]
    assert len(paid) == len(set(paid)), "no stored reply is asked again"


def _drive(path: str) -> None:
    drive(Run(open_store(path), "run"), fake_desk(note=lambda _: time.sleep(0.03)))


def test_two_drivers_share_a_run(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    config = SearchConfig(Budget(40), stagnation=3, max_active=2, width=2)
    new_run(store, config=config)
    spawn = multiprocessing.get_context("spawn")
    drivers = [spawn.Process(target=_drive, args=(str(tmp_path / "runs.db"),)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(60)
        assert driver.exitcode == 0
    run = Run(store, "run")
    assert run.state.ended == "budget: evaluations"
    assert run.state.evaluated == 40
    log = run.log()
    measured = [e.evaluation.program_id for e in log if isinstance(e, ev.Evaluated)]
    assert len(measured) == len(set(measured))
    assert len({e.holder.pid for e in log if isinstance(e, ev.Leased)}) == 2, "both did some of the work"


def test_two_shells_that_decide_on_the_same_state_cannot_both_win(store: Store) -> None:
    new_run(store)
    one, two = Run(store, "run"), Run(store, "run")
    first = one.take(Holder("one"))
    second = two.take(Holder("two"))
    assert isinstance(first, Request)
    assert isinstance(second, Wait), "the only plan is out already"


def test_a_reply_told_twice_or_by_two_shells_counts_once(store: Store) -> None:
    new_run(store)
    one, two = Run(store, "run"), Run(store, "run")
    request = one.take(ME)
    assert isinstance(request, Request)
    plan = Plan((Insert("root", Action("tile"), 0.5),))
    assert [type(e) for e in one.tell(request.id, plan)] == [ev.Planned]
    assert two.tell(request.id, plan) == []
    assert len(Run(store, "run").state.tree) == 2


def test_a_reply_to_nothing_or_of_the_wrong_kind_is_an_error_and_leaves_no_trace(store: Store) -> None:
    run = new_run(store)
    request = run.take(ME)
    assert isinstance(request, Request)
    seq = run.seq
    with pytest.raises(InvalidReply, match="no request 'r7'"):
        run.tell("r7", Plan())
    with pytest.raises(InvalidReply, match="no request 'r7'"):
        run.receive("r7", b"text")
    with pytest.raises(InvalidReply, match="wants a Plan"):
        run.tell(request.id, Program({"a.cpp": "x"}, "a.cpp::run", "cpp"))
    with pytest.raises(InvalidCommand, match="n9"):
        run.command(ev.Boost("n9", 0.5), "ada")
    assert run.seq == seq


class Down(FakeWriter):
    def answer(self, job: Job, prompt: bytes) -> Answer:
        raise Unavailable("connection refused")


def test_a_model_that_is_down_pauses_the_run_and_resuming_goes_on(store: Store) -> None:
    run = new_run(store)
    stopped = drive(run, Desk(FakePlanner(), Down(), FakeEvaluator()))
    assert isinstance(stopped, Wait)
    assert "connection refused" in stopped.why
    assert run.state.evaluated == 0
    assert [n.status for n in run.state.tree.values() if n.id != "root"].count("active") == 1
    run.command(ev.Resume(), "ada")
    assert drive(run, fake_desk()) == Done("budget: evaluations")
    assert run.state.evaluated == 20


def test_a_lost_evaluation_says_nothing_about_the_program(store: Store) -> None:
    run = new_run(store)
    drive(run, Desk(FakePlanner(), FakeWriter(), RecordedEvaluator({})))
    assert run.state.paused
    assert not run.state.evaluations
    lost = [e for e in run.log() if isinstance(e, ev.WorkLost)]
    assert len(lost) == CONFIG.max_retries + 1
    assert len({e.request_id for e in lost}) == 1


def test_a_recorded_run_replays_without_hardware(store: Store) -> None:
    run = new_run(store)
    drive(run, fake_desk())
    again = new_run(store, "again")
    desk = fake_desk()
    drive(again, Desk(desk.planner, desk.writer, RecordedEvaluator(run.state.evaluations)))
    assert again.state.tree == run.state.tree


def test_the_lease_of_a_dead_process_expires_at_once_and_that_of_a_living_one_does_not(store: Store) -> None:
    run = new_run(store)
    child = os.fork()
    if child == 0:
        Run(store, "run").take(this_process("child"))
        os._exit(0)
    os.waitpid(child, 0)
    request = run.take(this_process("parent"))
    assert isinstance(request, Request)
    assert [type(e) for e in run.log()][-2:] == [ev.Expired, ev.Leased]
    assert isinstance(Run(store, "run").take(ME), Wait)
    assert not is_dead(this_process("x"))
    assert not is_dead(Holder("agent"))
    assert not is_dead(Holder("elsewhere", "another-host", "b", 1, "1"))


def test_an_event_that_is_none_of_ours_stops_the_reading_with_its_place(store: Store) -> None:
    run = new_run(store)
    store.append("run", run.seq, [{"type": "ended", "v": 1, "reason": 7}])
    with pytest.raises(Corrupt, match="run run, event 2: ended v1.reason"):
        Run(store, "run")


def test_an_event_about_work_that_never_was_stops_the_reading_with_its_place(store: Store) -> None:
    run = new_run(store)
    store.append("run", run.seq, [{"type": "expired", "v": 1, "request_id": "r5", "reason": "x"}])
    with pytest.raises(Corrupt, match="event 2"):
        Run(store, "run")


def test_lost_by_who_had_given_up_before_does_not_take_the_work_from_the_next(store: Store) -> None:
    run = new_run(store)
    request = run.take(Holder("slow"), lease_s=-1)
    assert isinstance(request, Request)
    assert run.take(Holder("next")) == request
    assert run.tell(request.id, Lost("too late"), Holder("slow")) == []
    lease = run.state.pending[request.id].lease
    assert lease
    assert lease.holder == Holder("next")


def test_kinds_keep_an_evaluation_from_who_cannot_do_it(store: Store) -> None:
    run = new_run(store)
    words = frozenset({Kind.PLAN, Kind.WRITE})
    desk = fake_desk()
    for _ in range(50):
        request = run.take(ME, words)
        if not isinstance(request, Request):
            break
        assert request.kind is not Kind.EVALUATE
        mind = desk.mind(request.kind)
        assert mind
        job = Job(request, run.state, run.program)
        run.tell(request.id, mind.read(job, mind.answer(job, b"").raw, ""))
    assert isinstance(request, Wait)
    assert request.why == "evaluate is wanted"
