"""Design 3: what people say goes the same way as replies: checked, recorded with its author, then applied."""

from __future__ import annotations

import math

import pytest

from ksearch import events as ev
from ksearch.errors import InvalidCommand
from ksearch.protocol import Budget, Done, Kind, Plan, Request, Wait
from ksearch.types import Action, Origin
from tests.core.story import ACTIVE, OPEN, PRUNED, REJECTED, SOLVED, Story, add, kinds, passed, pid, planned, program


def refused(story: Story, wanted: ev.Command) -> str:
    """The message of a command that is refused; nothing is recorded."""
    before = len(story.log)
    with pytest.raises(InvalidCommand) as error:
        story.command(wanted)
    assert len(story.log) == before
    return str(error.value)


@pytest.mark.parametrize(
    "wanted",
    [
        ev.Pause("lunch"),
        ev.Stop("enough"),
        ev.Pin("n1"),
        ev.Boost("n1", 1.0),
        ev.PruneNode("n1", "no use"),
        ev.AddAction("root", Action("mine"), id="n2"),
        ev.SetBudget(Budget(99)),
        ev.SetParallel(3, 2),
        ev.Note("hm", "n1"),
    ],
)
def test_every_command_is_recorded_with_its_author(wanted: ev.Command) -> None:
    story = planned(add("a"))
    assert story.command(wanted)[0] == ev.Commanded(command=wanted, author="eve")


def test_a_paused_run_hands_out_nothing_until_it_is_resumed() -> None:
    story = planned(add("a"))
    story.command(ev.Pause("lunch"))
    assert story.asks() == Wait("paused: lunch")
    story.command(ev.Resume())
    story.hand_out(Kind.WRITE)


def test_a_pause_without_a_reason_names_who_paused() -> None:
    story = planned(add("a"))
    story.command(ev.Pause())
    assert story.asks() == Wait("paused: by eve")


def test_what_is_out_may_finish_while_the_run_is_paused() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE)
    story.command(ev.Pause())
    assert kinds(story.tell(request, program("a"))) == ["Written"]


def test_a_paused_run_does_not_end() -> None:
    story = planned(add("a"), budget=Budget(1))
    story.write("a")
    out = story.hand_out(Kind.EVALUATE)
    story.command(ev.Pause())
    story.tell(out, passed("a", 2))
    assert story.state.ended is None
    assert story.command(ev.Resume())[-1] == ev.Ended(reason="budget: evaluations")


def test_a_run_is_paused_once() -> None:
    story = planned(add("a"))
    story.command(ev.Pause("lunch"))
    assert refused(story, ev.Pause()) == "the run is paused already: lunch"


def test_only_a_paused_or_ended_run_can_be_resumed() -> None:
    assert "nothing to resume" in refused(planned(add("a")), ev.Resume())


def test_a_boost_changes_the_order() -> None:
    story = planned(add("a", 0.9), add("b", 0.1))
    story.command(ev.Boost("n2", 1.0))
    assert story.hand_out(Kind.WRITE).node_id == "n2"


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1, 7, True])
def test_a_boost_outside_0_to_1_is_refused(value: float) -> None:
    assert "finite number in [0, 1]" in refused(planned(add("a")), ev.Boost("n1", value))


def test_a_person_can_add_an_action_that_is_marked_as_theirs() -> None:
    story = planned(add("a", 0.1))
    story.command(ev.AddAction("root", Action("mine"), 0.9))
    assert (story.node("n2").origin, story.node("n2").status) == (Origin.PERSON, OPEN)
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_the_id_of_an_added_action_is_the_engines() -> None:
    story = planned(add("a"))
    story.command(ev.AddAction("root", Action("mine"), id="n1"))
    assert list(story.state.tree) == ["root", "n1", "n2"]


@pytest.mark.parametrize("parent", ["n9", "n1"])
def test_an_action_cannot_be_added_under_a_missing_or_rejected_node(parent: str) -> None:
    story = planned(add("a"))
    story.fails(3)
    assert "parent" in refused(story, ev.AddAction(parent, Action("mine")))


def test_an_added_action_needs_a_value_between_0_and_1() -> None:
    assert "value" in refused(planned(add("a")), ev.AddAction("root", Action("mine"), value=7))


def test_a_person_can_prune_an_open_node_with_all_below_it() -> None:
    story = planned(add("a", name="a"), add("b", under="a"), add("c"))
    story.command(ev.PruneNode("n1"))
    assert story.statuses() == {"n1": PRUNED, "n2": PRUNED, "n3": OPEN}


def test_a_pruned_node_keeps_its_notes_and_place() -> None:
    story = planned(add("a"))
    story.command(ev.PruneNode("n1", "no use"))
    assert story.node("n1").parent_id == "root"
    assert story.last(ev.Commanded).command.reason == "no use"


def at_work() -> Story:
    story = planned(add("a", 0.9), add("b", 0.8), add("c", 0.1), max_active=2)
    story.hand_out(Kind.WRITE)
    story.attempt("b", 2)
    story.fails(3)
    story.plan()
    assert [n.status for n in story.state.tree.values()] == [SOLVED, ACTIVE, SOLVED, OPEN]
    return story


@pytest.mark.parametrize("node", ["n1", "n2", "root"])
@pytest.mark.parametrize("make", [ev.PruneNode, ev.Pin, lambda node: ev.Boost(node, 0.5)])
def test_only_open_nodes_can_be_pruned_pinned_and_boosted(make: type[ev.Pin], node: str) -> None:
    message = refused(at_work(), make(node))
    assert message.startswith("only an open node can be")
    assert repr(node) in message


@pytest.mark.parametrize("wanted", [ev.PruneNode("n9"), ev.Pin("n9"), ev.Boost("n9", 0.5), ev.Note("hm", "n9")])
def test_a_command_about_a_node_that_does_not_exist_says_so(wanted: ev.Command) -> None:
    assert "'n9' does not exist" in refused(planned(add("a")), wanted)


def test_notes_and_reviews_speak_of_measured_programs_and_change_nothing() -> None:
    story = planned(add("a"))
    story.attempt("a", 2)
    before = story.state
    story.command(ev.Note("looks odd", program_id=pid("a")))
    story.command(ev.Review(pid("a"), accept=False, text="it caches"))
    assert story.state == before


@pytest.mark.parametrize("wanted", [ev.Note("hm", program_id=pid("x")), ev.Review(pid("x"), accept=True)])
def test_a_word_on_a_program_that_was_not_measured_is_refused(wanted: ev.Command) -> None:
    assert "has not been measured" in refused(planned(add("a")), wanted)


def test_stop_hands_out_nothing_new_and_ends_the_run() -> None:
    story = planned(add("a"))
    assert kinds(story.command(ev.Stop("enough"))) == ["Commanded", "Ended"]
    assert story.asks() == Done("stopped: enough")


def test_stop_closes_open_cycles_with_their_best() -> None:
    story = planned(add("a"))
    story.attempt("a", 2)
    assert kinds(story.command(ev.Stop())) == ["Commanded", "CycleClosed", "Ended"]
    assert story.last(ev.CycleClosed).reason == "stopped"
    assert (story.node("n1").status, story.node("n1").program_id) == (SOLVED, pid("a"))


def test_what_is_out_may_finish_after_a_stop() -> None:
    story = planned(add("a"))
    story.write("a")
    out = story.hand_out(Kind.EVALUATE)
    assert kinds(story.command(ev.Stop())) == ["Commanded"]
    assert story.asks() == Wait("work is out", until=100)
    assert kinds(story.tell(out, passed("a", 2))) == ["Evaluated", "Judged", "CycleClosed", "Ended"]
    assert story.node("n1").program_id == pid("a")


def test_a_stop_still_measures_what_is_written() -> None:
    story = planned(add("first", 0.9), add("second", 0.8), max_active=2)
    story.hand_out(Kind.WRITE)
    story.write("b")
    story.command(ev.Stop())
    story.measure("b", 2)
    assert story.asks() == Wait("work is out", until=100), "and nothing else is handed out"


def test_a_stop_is_not_held_up_by_a_holder_who_never_answers() -> None:
    story = planned(add("a"))
    story.attempt("a", 2)
    story.hand_out(Kind.WRITE, seconds=10)
    story.command(ev.Stop())
    assert kinds(story.passes(11)) == ["Expired", "CycleClosed", "Ended"]


def test_a_paused_run_can_be_stopped() -> None:
    story = planned(add("a"))
    story.command(ev.Pause())
    story.command(ev.Stop("enough"))
    assert story.asks() == Done("stopped: enough")


def test_a_run_is_stopped_once() -> None:
    story = planned(add("a"))
    story.command(ev.Stop("enough"))
    assert "has ended already" in refused(story, ev.Stop())


def test_a_stopped_run_can_be_resumed() -> None:
    story = planned(add("a"), add("b", 0.1))
    story.attempt("a", 2)
    story.command(ev.Stop())
    story.command(ev.Resume())
    story.plan()
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_more_budget_reopens_a_run_that_had_spent_it() -> None:
    story = planned(add("a"), add("b", 0.1), budget=Budget(1))
    story.attempt("a", 2)
    assert story.asks() == Done("budget: evaluations")
    story.command(ev.SetBudget(Budget(2)))
    assert story.state.config.budget == Budget(2)
    story.plan()
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_a_budget_that_is_still_too_small_ends_the_run_again() -> None:
    story = planned(add("a"), budget=Budget(1))
    story.attempt("a", 2)
    assert kinds(story.command(ev.SetBudget(Budget(1)))) == ["Commanded", "Ended"]


def test_a_smaller_budget_closes_the_open_cycle() -> None:
    story = planned(add("a"))
    story.attempt("a", 2)
    assert kinds(story.command(ev.SetBudget(Budget(1)))) == ["Commanded", "CycleClosed", "Ended"]


def test_a_new_action_reopens_a_run_that_had_nothing_left_to_do() -> None:
    story = planned()
    story.plan()
    assert isinstance(story.asks(), Done)
    story.command(ev.AddAction("root", Action("mine")))
    assert story.hand_out(Kind.WRITE).node_id == "n1"


def test_resuming_a_run_that_had_nothing_left_to_do_asks_the_planner_once_more() -> None:
    story = planned()
    story.plan()
    story.command(ev.Resume())
    assert story.hand_out(Kind.PLAN).why == "empty_frontier"


def test_a_resumed_run_that_was_paused_by_losses_goes_on_with_the_same_request() -> None:
    story = planned(add("a"))
    story.loses(4, Kind.WRITE)
    assert isinstance(story.asks(), Wait)
    story.command(ev.Resume())
    request = story.asks()
    assert isinstance(request, Request)
    assert request.id == "r1"


def test_a_stop_right_after_a_loss_does_not_reject_an_action_that_was_never_judged() -> None:
    story = planned(add("a", name="a"), add("b", under="a"))
    story.loses(1, Kind.WRITE)
    story.command(ev.Stop())
    assert story.node("n1").status is not REJECTED


def test_a_planner_with_nothing_to_add_does_not_end_a_run_in_which_an_action_is_at_work() -> None:
    story = planned()
    plan = story.hand_out(Kind.PLAN)
    story.command(ev.AddAction("root", Action("mine")))
    story.hand_out(Kind.WRITE)
    story.tell(plan, Plan())
    assert story.state.exhausted is None
