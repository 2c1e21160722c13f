"""Design 3: a program that nobody asked for enters under a named node, or under a new one that the engine makes."""

from __future__ import annotations

import pytest

from ksearch import events as ev
from ksearch.budget import evaluations_committed
from ksearch.errors import InvalidCommand
from ksearch.protocol import Budget, Cost, Kind, Wait
from ksearch.types import Origin, Verdict
from tests.core.story import (
    ACTIVE,
    OPEN,
    REJECTED,
    SOLVED,
    Story,
    add,
    child_at_work,
    failed,
    kinds,
    pid,
    planned,
    program,
)


def refused(story: Story, text: str, node: str = "root") -> str:
    before = len(story.log)
    with pytest.raises(InvalidCommand) as error:
        story.submit(text, node)
    assert len(story.log) == before
    return str(error.value)


def test_a_submitted_program_gets_a_node_of_its_own_under_the_root() -> None:
    story = planned()
    story.submit("mine", title="tile by 32")
    node = story.node("n1")
    assert (node.parent_id, node.origin, node.status) == ("root", Origin.SUBMITTED, ACTIVE)
    assert node.action.title == "tile by 32"
    assert story.last(ev.Submitted).author == "eve"


def test_a_submitted_program_without_a_title_names_its_author() -> None:
    story = planned()
    story.submit("mine")
    assert story.node("n1").action.title == "submitted by eve"


def test_a_submitted_program_is_measured_and_judged_and_its_node_closes_at_once() -> None:
    story = planned()
    story.submit("mine")
    assert kinds(story.measure("mine", 2)) == ["Evaluated", "Judged", "CycleClosed"]
    assert story.last(ev.CycleClosed).reason == "single"
    assert (story.node("n1").status, story.node("n1").program_id) == (SOLVED, pid("mine"))
    assert story.state.best_id == pid("mine")


def test_a_submitted_program_that_fails_rejects_the_node_made_for_it() -> None:
    story = planned()
    story.submit("mine")
    story.measure("mine", None)
    assert story.node("n1").status is REJECTED


def test_the_planner_is_shown_what_became_of_a_submitted_program() -> None:
    story = planned()
    story.submit("mine")
    story.measure("mine", 2)
    request = story.hand_out(Kind.PLAN)
    assert (request.node_id, request.why) == ("n1", "closed")


def test_no_program_is_asked_for_at_a_node_made_for_one() -> None:
    story = planned(width=2)
    story.submit("mine")
    story.hand_out(Kind.EVALUATE)
    assert story.asks() == Wait("work is out", until=100)


def test_a_program_submitted_under_a_solved_node_gets_a_child_and_is_timed_beside_its_parent() -> None:
    story = child_at_work()
    story.submit("mine", "n1")
    assert story.node("n3").parent_id == "n1"
    assert story.hand_out(Kind.EVALUATE).against == (pid("parent"),)


def test_a_program_is_timed_beside_the_best_of_the_run_too() -> None:
    story = child_at_work()
    story.submit("fast")
    story.measure("fast", 5, parent=2.5)
    story.plan()
    story.write("a")
    assert story.hand_out(Kind.EVALUATE).against == (pid("parent"), pid("fast"))


def test_a_program_submitted_at_an_open_node_is_the_first_attempt_at_its_action() -> None:
    story = planned(add("a"))
    story.submit("mine", "n1")
    story.measure("mine", 2)
    assert story.node("n1").status is ACTIVE
    request = story.hand_out(Kind.WRITE)
    assert (request.node_id, request.program_id) == ("n1", pid("mine"))


def test_a_program_submitted_at_an_active_node_is_one_more_attempt() -> None:
    story = planned(add("a"))
    story.attempt("a", 2)
    story.submit("mine", "n1")
    story.measure("mine", 3, a=1.5)
    assert story.last(ev.Judged).attempt == 1
    assert story.state.cycles["n1"].best_id == pid("mine")


def test_a_submitted_program_that_brings_nothing_counts_towards_stagnation() -> None:
    story = planned(add("a"))
    story.fails(2)
    story.submit("mine", "n1")
    story.measure("mine", None)
    assert story.last(ev.CycleClosed).reason == "stagnation"


def test_nothing_is_submitted_at_a_node_that_waits_for_its_parent() -> None:
    story = planned(add("a", name="a"), add("b", under="a"))
    assert "'n2' waits for its parent 'n1'" in refused(story, "mine", "n2")
    assert story.node("n2").status is OPEN


def test_nothing_is_submitted_at_a_rejected_pruned_or_missing_node() -> None:
    story = planned(add("a", 0.9), add("b"))
    story.command(ev.PruneNode("n2"))
    story.fails(3)
    assert "'n1' is rejected" in refused(story, "mine", "n1")
    assert "'n2' is pruned" in refused(story, "mine", "n2")
    assert "'n9' does not exist" in refused(story, "mine", "n9")


def test_a_program_that_was_measured_before_is_not_taken_again() -> None:
    story = planned(add("a"))
    story.attempt("a", None)
    assert "measured before: wrong_values" in refused(story, "a")


def test_a_program_that_waits_to_be_measured_is_not_taken_again() -> None:
    story = planned(add("a"))
    story.write("a")
    assert "waiting to be measured" in refused(story, "a")
    story.submit("b")
    assert "waiting to be measured" in refused(story, "b")


def test_a_written_program_that_was_submitted_meanwhile_is_a_duplicate() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE)
    story.submit("same")
    story.tell(request, program("same"))
    assert story.last(ev.WriteFailed).verdict is Verdict.DUPLICATE


def test_a_submitted_program_needs_room_in_the_budget() -> None:
    story = planned(add("a"), budget=Budget(1))
    story.write("a")
    assert "no room for another program, budget: evaluations" in refused(story, "mine")


def test_a_submitted_program_holds_an_evaluation_and_counts_as_an_attempt() -> None:
    story = planned()
    story.submit("mine")
    assert (evaluations_committed(story.state), story.state.attempts) == (1, 1)


def test_a_submitted_program_is_measured_before_anything_else_is_bought() -> None:
    story = planned(add("a"))
    story.submit("mine")
    assert story.hand_out().kind is Kind.EVALUATE


def test_nothing_is_submitted_to_a_run_that_stops() -> None:
    story = planned(add("a"))
    story.command(ev.Stop("enough"))
    assert "stopping (enough)" in refused(story, "mine")


def test_a_submitted_program_reopens_a_run_that_had_nothing_left_to_do() -> None:
    story = planned()
    story.plan()
    story.submit("mine")
    assert story.state.ended is None
    story.measure("mine", 2)
    story.hand_out(Kind.PLAN)


def test_a_submitted_program_can_be_measured_when_there_is_no_money_for_calls() -> None:
    story = planned(reserve=Cost(100), budget=Budget(tokens=100))
    story.submit("mine")
    assert kinds(story.measure("mine", 2)) == ["Evaluated", "Judged", "CycleClosed", "Ended"]


def test_a_portfolio_gets_a_node_that_says_so_and_its_members_are_recorded() -> None:
    story = planned(add("a"), add("b"))
    story.attempt("a", 2)
    story.submit("dispatch", members=(pid("a"),))
    assert story.node("n3").origin is Origin.PORTFOLIO
    assert story.last(ev.Submitted).members == (pid("a"),)


def test_a_submission_while_a_program_is_out_waits_for_its_turn_to_be_judged() -> None:
    story = planned(add("a"))
    first = story.hand_out(Kind.WRITE)
    story.submit("mine", "n1")
    assert kinds(story.measure("mine", 2)) == ["Evaluated"]
    story.tell(first, program("a"))
    assert kinds(story.measure("a", None)) == ["Evaluated", "Judged", "Judged"]
    assert story.state.cycles["n1"].best_id == pid("mine")


def test_a_submission_does_not_let_more_programs_be_written_at_once_than_the_width() -> None:
    story = planned(add("a"), width=2)
    story.hand_out(Kind.WRITE)
    story.hand_out(Kind.WRITE)
    story.submit("mine", "n1")
    story.hand_out(Kind.EVALUATE)
    assert story.asks() == Wait("work is out", until=100)


def test_a_portfolio_dispatches_to_measured_programs_only() -> None:
    with pytest.raises(InvalidCommand, match="has not been measured"):
        planned().submit("dispatch", members=("nonsense",))


def test_a_title_of_blanks_is_no_title() -> None:
    story = planned()
    story.submit("mine", title="  ")
    assert story.node("n1").action.title == "submitted by eve"


def test_a_second_program_submitted_at_a_node_made_for_one_is_judged_too() -> None:
    story = planned()
    story.submit("mine")
    story.submit("mine too", "n1")
    story.tell(story.hand_out(Kind.EVALUATE), failed("mine"))
    story.measure("mine too", 2)
    assert story.node("n1").program_id == pid("mine too")


def test_a_submitted_program_is_measured_before_a_stop_ends_the_run() -> None:
    story = planned()
    story.submit("mine")
    story.command(ev.Stop())
    story.measure("mine", 2)
    assert story.node("n1").program_id == pid("mine")
    assert story.state.ended
