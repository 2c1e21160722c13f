"""Design 3: who holds a request, until when, and what becomes of late, double, wrong and lost answers."""

from __future__ import annotations

import pytest

from ksearch import events as ev
from ksearch.budget import tokens_committed
from ksearch.errors import InvalidReply
from ksearch.protocol import Budget, Cost, Kind, Lost, Plan, Refusal, Request, Wait
from ksearch.types import Evaluation, Verdict
from tests.core.story import ACTIVE, ANN, BOB, Story, add, failed, kinds, passed, pid, planned, program


def test_work_that_is_out_is_not_handed_out_again() -> None:
    story = planned(add("a"))
    story.hand_out(seconds=100)
    assert story.asks() == Wait("work is out", until=100)


def test_waiting_ends_at_the_first_deadline() -> None:
    story = planned(add("a"), add("b"), max_active=2)
    story.hand_out(seconds=100)
    story.hand_out(seconds=50)
    assert story.asks() == Wait("work is out", until=50)


def test_a_lease_runs_out_at_its_deadline_and_the_work_is_asked_again_by_the_same_id() -> None:
    story = planned(add("a"))
    request = story.hand_out(seconds=100)
    assert story.passes(100) == []
    assert story.passes(1) == [ev.Expired(at=101, request_id=request.id, reason="the lease ran out")]
    assert story.asks() == request
    assert story.hand_out(holder=BOB) == request
    assert story.state.asked == 2


def test_the_lease_of_a_dead_holder_ends_at_once() -> None:
    story = planned(add("a"), add("b"), max_active=2)
    dead, alive = story.hand_out(holder=ANN), story.hand_out(holder=BOB)
    assert story.passes(1, dead=ANN) == [ev.Expired(at=1, request_id=dead.id, reason="its holder is dead")]
    assert story.state.pending[alive.id].lease
    assert story.asks() == dead


def test_a_late_answer_is_taken_when_nobody_else_has_the_work() -> None:
    story = planned(add("a"))
    request = story.hand_out(seconds=100)
    story.passes(101)
    assert kinds(story.tell(request, program("late"), ANN)) == ["Written"]


def test_a_late_answer_is_taken_even_while_somebody_else_works_on_it() -> None:
    story = planned(add("a"))
    request = story.hand_out(holder=ANN)
    story.passes(101)
    story.hand_out(holder=BOB)
    assert kinds(story.tell(request, program("late"), ANN)) == ["Written"]
    assert story.tell(request, program("later"), BOB) == []


def test_a_second_answer_does_nothing() -> None:
    story = planned(add("a"))
    request = story.write("first")
    assert story.tell(request, program("second")) == []
    assert story.tell(request, program("first")) == []
    assert story.tell(request, Lost("gone")) == []


def test_what_an_earlier_holder_gives_up_is_still_worked_on_by_the_next() -> None:
    story = planned(add("a"))
    request = story.hand_out(holder=ANN)
    story.passes(101)
    story.hand_out(holder=BOB)
    assert story.tell(request, Lost("gone"), ANN) == []
    assert story.state.pending[request.id].lease
    assert kinds(story.tell(request, Lost("gone"), BOB)) == ["WorkLost"]


def test_lost_work_is_asked_again_by_the_same_id() -> None:
    story = planned(add("a"))
    story.write("a")
    request = story.hand_out(Kind.EVALUATE)
    story.tell(request, Lost("the GPU fell off the bus"))
    assert story.asks() == request
    assert story.state.attempts == 1


def test_a_lost_evaluation_is_never_a_verdict_and_pauses_the_run_after_the_retries() -> None:
    story = planned(add("a"))
    story.write("a")
    assert kinds(story.loses(4, Kind.EVALUATE)) == ["WorkLost", "Paused"]
    assert story.node("n1").status is ACTIVE
    assert story.state.cycles["n1"].attempts[0].verdict is None
    assert "evaluate was lost 4 times, last: the machine went away" in story.state.paused or ""


def test_lost_writing_pauses_the_run_after_the_retries() -> None:
    story = planned(add("a"))
    assert kinds(story.loses(4, Kind.WRITE)) == ["WorkLost", "Paused"]


def test_a_resumed_run_has_all_its_retries_again() -> None:
    story = planned(add("a"))
    story.loses(4, Kind.WRITE)
    story.command(ev.Resume())
    assert kinds(story.loses(3, Kind.WRITE)) == ["WorkLost"]
    assert kinds(story.loses(1, Kind.WRITE)) == ["WorkLost", "Paused"]


def test_an_answer_after_the_cycle_closed_is_noted_once_and_changes_nothing() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE, seconds=10)
    story.passes(11)
    story.command(ev.Stop())
    before = story.state.tree
    assert kinds(story.tell(request, program("late"))) == ["Ignored"]
    assert story.tell(request, program("late")) == []
    assert story.state.tree == before


@pytest.mark.parametrize("id", ["r²", "r01", "", "r", "r-1", "R0", "0", " r0", "r0 ", "r٣", "r99", "r1e1", "nonsense"])
def test_an_answer_to_a_request_that_nobody_made_is_refused(id: str) -> None:
    story = planned(add("a"))
    with pytest.raises(InvalidReply, match="no request"):
        story.tell(Request(id, Kind.WRITE, "n1"), program("a"))


def test_an_absurdly_long_request_id_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidReply, match="no request"):
        planned(add("a")).tell(Request("r" + "9" * 5000, Kind.WRITE, "n1"), program("a"))


def test_a_plan_does_not_answer_a_write() -> None:
    story = planned(add("a"))
    with pytest.raises(InvalidReply, match="r1 wants a Program: a Plan does not answer it"):
        story.tell(story.hand_out(), Plan())


def test_only_an_evaluation_answers_an_evaluate() -> None:
    story = planned(add("a"))
    story.write("a")
    request = story.hand_out(Kind.EVALUATE)
    for wrong in (program("a"), Plan(), Refusal(Verdict.REFUSED, "no")):
        with pytest.raises(InvalidReply, match="r2 wants an Evaluation"):
            story.tell(request, wrong)
    story.tell(request, failed("a"))


def test_an_evaluation_of_another_program_is_refused() -> None:
    story = planned(add("a"))
    story.write("a")
    with pytest.raises(InvalidReply, match=f"asks for program {pid('a')}, not {pid('b')}"):
        story.tell(story.hand_out(), passed("b", 9))


def test_a_refused_answer_leaves_the_request_open_for_the_right_one() -> None:
    story = planned(add("a"))
    story.write("a")
    request = story.hand_out()
    with pytest.raises(InvalidReply):
        story.tell(request, passed("b", 9))
    assert kinds(story.tell(request, passed("a", 2))) == ["Evaluated", "Judged"]


def test_a_stored_reply_is_remembered_until_it_is_told() -> None:
    story = planned(add("a"))
    request = story.hand_out(holder=ANN)
    story.pays(request)
    story.passes(1, dead=ANN)
    assert story.state.pending[request.id].received
    story.tell(request, program("a"))
    assert request.id not in story.state.pending


def test_whoever_cannot_measure_is_never_handed_an_evaluation() -> None:
    story = planned(add("a"))
    story.write("a")
    assert story.asks(Kind.PLAN, Kind.WRITE) == Wait("evaluate is wanted", until=None)
    request = story.asks(Kind.EVALUATE)
    assert isinstance(request, Request)
    assert request.kind is Kind.EVALUATE


def test_whoever_cannot_write_is_handed_what_is_measured_only() -> None:
    assert planned(add("a")).asks(Kind.EVALUATE) == Wait("write is wanted", until=None)


def test_an_evaluation_is_handed_out_to_one_worker_only() -> None:
    story = planned(add("a"))
    story.write("a")
    story.hand_out(Kind.EVALUATE)
    assert story.asks(Kind.EVALUATE) == Wait("work is out", until=100)


def test_an_evaluation_ends_with_a_verdict_on_a_program() -> None:
    with pytest.raises(ValueError, match="verdict on a reply"):
        Evaluation(pid("a"), Verdict.UNPARSABLE)


def test_a_refusal_carries_a_verdict_on_a_reply() -> None:
    with pytest.raises(ValueError, match="no verdict on a reply"):
        Refusal(Verdict.WRONG_VALUES, "no")


def expired(story: Story, kind: Kind, times: int) -> list[ev.Event]:
    events: list[ev.Event] = []
    for _ in range(times):
        story.hand_out(kind, seconds=10)
        events = story.passes(11)
    return events


def test_a_planner_that_never_answers_is_given_up_after_the_retries() -> None:
    assert "PlanAbandoned" in kinds(expired(Story(), Kind.PLAN, 4))


def test_work_whose_lease_runs_out_again_and_again_pauses_the_run() -> None:
    story = planned(add("a"))
    story.write("a")
    assert "Paused" in kinds(expired(story, Kind.EVALUATE, 4))


def test_people_who_kill_and_resume_the_driver_do_not_use_up_the_retries() -> None:
    story = planned(add("a"))
    for _ in range(10):
        story.hand_out(Kind.WRITE)
        assert kinds(story.passes(1, dead=ANN)) == ["Expired"]


def test_the_same_loss_told_twice_counts_once() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE)
    assert kinds(story.tell(request, Lost("gone"), ANN)) == ["WorkLost"]
    assert story.tell(request, Lost("gone"), ANN) == []


def test_a_loss_that_asking_again_cannot_mend_pauses_the_run_at_once() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE)
    assert kinds(story.tell(request, Lost("no key", again=False))) == ["WorkLost", "Paused"]
    assert story.asks() == Wait("paused: no key")


def test_a_loss_that_is_known_to_be_free_gives_its_reservation_back() -> None:
    story = planned(add("a"), reserve=Cost(100))
    request = story.hand_out(Kind.WRITE)
    story.tell(request, Lost("refused to connect", billed=False))
    assert (story.state.spent.tokens, story.state.reserved) == (100, {})  # the plan's


def test_a_stored_reply_is_read_again_for_nothing() -> None:
    story = planned(add("a"), reserve=Cost(100), budget=Budget(tokens=200))
    request = story.hand_out(Kind.WRITE, ANN)
    story.pays(request, tokens=100)
    story.passes(101)
    assert story.hand_out(Kind.WRITE, BOB) == request  # though no call could be paid for any more
    assert tokens_committed(story.state) == 200
    story.tell(request, program("a"))
    assert story.state.spent.tokens == 200
