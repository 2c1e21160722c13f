"""Design 3: several programs may be written at once for one action; a round of them finishes before more happens."""

from __future__ import annotations

from ksearch import events as ev
from ksearch.protocol import Kind, Refusal, Wait
from ksearch.types import Verdict
from tests.core.story import add, kinds, planned, program


def test_a_round_of_programs_is_written_at_once() -> None:
    story = planned(add("a"), width=2)
    story.hand_out(Kind.WRITE)
    story.hand_out(Kind.WRITE)
    assert story.asks() == Wait("work is out", until=100)


def test_a_round_finishes_before_its_cycle_closes_and_before_the_next_begins() -> None:
    story = planned(add("a"), width=2, stagnation=1)
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.tell(second, Refusal(Verdict.UNPARSABLE, "no"))
    story.tell(first, program("a"))
    assert story.count(ev.CycleClosed) == 0
    story.measure("a", None)
    assert story.last(ev.CycleClosed).reason == "stagnation"


def test_a_half_asked_round_is_filled_before_its_cycle_closes() -> None:
    story = planned(add("a"), width=2, stagnation=1)
    assert kinds(story.fails(1)) == ["WriteFailed", "Judged"]
    story.hand_out(Kind.WRITE)


def test_attempts_are_judged_in_the_order_of_their_requests() -> None:
    story = planned(add("a"), width=2)
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.tell(second, program("b"))
    assert kinds(story.measure("b", 3)) == ["Evaluated"]
    story.tell(first, program("a"))
    assert kinds(story.measure("a", 2)) == ["Evaluated", "Judged", "Judged"]
    assert [(j.attempt, j.improved) for j in story.log if isinstance(j, ev.Judged)] == [(0, True), (1, True)]


def test_identical_programs_of_one_round_are_measured_once() -> None:
    story = planned(add("a"), width=2)
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.tell(second, program("same"))
    assert kinds(story.tell(first, program("same"))) == ["WriteFailed", "Judged"]
    assert "waiting to be measured" in story.last(ev.WriteFailed).reason


def test_more_may_be_at_work_at_once_from_a_command_on() -> None:
    story = planned(add("a"), add("b"))
    story.hand_out(Kind.WRITE)
    assert story.asks() == Wait("work is out", until=100)
    story.command(ev.SetParallel(max_active=2, width=2))
    assert [story.hand_out(Kind.WRITE).node_id for _ in range(3)] == ["n1", "n2", "n2"]


def test_a_narrower_round_lets_what_is_out_finish() -> None:
    story = planned(add("a"), width=3, stagnation=1)
    first, second = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    story.command(ev.SetParallel(max_active=1, width=1))
    assert story.asks() == Wait("work is out", until=100)
    story.tell(first, Refusal(Verdict.UNPARSABLE, "no"))
    assert kinds(story.tell(second, Refusal(Verdict.UNPARSABLE, "no")))[-1] == "CycleClosed"
