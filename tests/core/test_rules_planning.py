"""Design 2.3: the planner edits the tree, all or nothing, and the engine holds the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.errors import InvalidReply
from ksearch.protocol import Budget, Done, Kind, Lost, Plan, Refusal, Request
from ksearch.types import Action, Insert, NodeStatus, TreeEdit, Verdict
from tests.core.story import (
    ANN,
    BOB,
    OPEN,
    PRUNED,
    Prune,
    Story,
    Update,
    add,
    kinds,
    planned,
    program,
)


def refusal_of(story: Story, *edits: TreeEdit) -> str:
    """The reason why these edits are refused; the tree is as before."""
    before = story.state.tree
    assert kinds(story.plan(*edits)) == ["PlanRefused"]
    assert story.state.tree == before
    return str(story.last(ev.PlanRefused).reason)


def waiting_for_a_plan() -> Story:
    """n1 is solved, n2 open; the planner is to be asked about n1."""
    story = planned(add("first", 0.9), add("second", 0.1))
    story.attempt("a", 2)
    story.fails(3)
    return story


def test_a_run_begins_with_a_plan() -> None:
    request = Story().hand_out(Kind.PLAN)
    assert (request.node_id, request.why) == ("root", "start")


def test_a_plan_is_asked_for_after_each_cycle() -> None:
    request = waiting_for_a_plan().hand_out(Kind.PLAN)
    assert (request.node_id, request.why) == ("n1", "closed")


def test_inserts_updates_and_prunes_of_one_plan_are_taken_together() -> None:
    story = planned(add("a"), add("b"))
    story.fails(3)
    story.plan(Update("n2", value=0.8, difficulty=1, notes="hm"), add("c", 0.3))
    node = story.node("n2")
    assert (node.value, node.action.difficulty, node.notes) == (0.8, 1, "hm")
    assert story.node("n3").action.title == "c"


def test_one_wrong_edit_refuses_all() -> None:
    assert "parent 'n9' of 'bad' does not exist" in refusal_of(Story(), add("good"), add("bad", under="n9"))


def test_a_refused_plan_is_asked_again_with_the_reason_at_hand() -> None:
    story = Story()
    reason = refusal_of(story, add("bad", under="n9"))
    again = story.hand_out(Kind.PLAN)
    assert story.state.pending[again.id].refusals == (reason,)
    assert story.last(ev.PlanRefused).offered == Plan((add("bad", under="n9"),))


def test_a_plan_inserts_at_most_max_new_nodes() -> None:
    story = Story(max_new_nodes=2)
    assert "at most 2 nodes, this one inserts 3" in refusal_of(story, add("a"), add("b"), add("c"))
    assert kinds(story.plan(add("a"), add("b"))) == ["Planned"]


def test_ids_are_the_engines_own() -> None:
    story = planned(Insert("root", Action("a"), id="mine"), add("b"))
    assert list(story.state.tree) == ["root", "n1", "n2"]


def test_one_plan_can_insert_a_parent_and_its_child_by_a_local_name() -> None:
    story = planned(add("parent", name="p"), add("child", under="p"))
    assert story.node("n2").parent_id == "n1"


def test_a_local_name_serves_updates_too() -> None:
    assert planned(add("a", name="p"), Update("p", notes="later")).node("n1").notes == "later"


def test_a_local_name_is_used_once() -> None:
    assert "'p' is used twice" in refusal_of(Story(), add("a", name="p"), add("b", name="p"))


def test_a_local_name_cannot_be_the_id_of_a_node() -> None:
    assert "is the id of a node" in refusal_of(Story(), add("a", name="root"))


def test_a_local_name_must_be_introduced_before_it_is_used() -> None:
    assert "parent 'p' of 'child' does not exist" in refusal_of(Story(), add("child", under="p"), add("p", name="p"))


def test_actions_may_be_inserted_under_solved_and_open_nodes() -> None:
    story = waiting_for_a_plan()
    story.plan(add("under solved", under="n1"), add("under open", under="n2"))
    assert story.node("n3").parent_id == "n1"
    assert story.node("n4").parent_id == "n2"


def test_nothing_is_inserted_under_a_rejected_node() -> None:
    story = planned(add("a"))
    story.fails(3)
    assert "'n1' of 'b' is rejected" in refusal_of(story, add("b", under="n1"))


def test_nothing_is_inserted_under_a_pruned_node() -> None:
    story = planned(add("a", 0.9), add("b"))
    story.command(ev.PruneNode("n2"))
    story.fails(3)
    assert "'n2' of 'c' is pruned" in refusal_of(story, add("c", under="n2"))


@pytest.mark.parametrize("edit", [Update("n1", value=1.0), Prune("n1"), Update("root", notes="x"), Prune("root")])
def test_the_planner_touches_only_open_nodes(edit: TreeEdit) -> None:
    assert "only an open node can be" in refusal_of(waiting_for_a_plan(), edit)


def test_the_planner_cannot_touch_an_active_node() -> None:
    story = planned(add("a", 0.9), add("b", 0.8), add("c", 0.1), max_active=2)
    story.hand_out(Kind.WRITE)
    story.fails(3)  # n2
    assert "'n1' is active" in refusal_of(story, Update("n1", value=0.1))


def test_pruning_withdraws_a_node_and_all_that_is_open_below_it() -> None:
    story = planned(add("a", 0.9), add("b", name="b"), add("c", under="b"))
    story.fails(3)
    story.plan(Prune("n2", "no use"))
    assert (story.node("n2").status, story.node("n3").status) == (PRUNED, PRUNED)


def odd_subtree(child: str) -> Story:
    """n2 is open with a child that is active or solved: a later engine, or an imported log, can make such trees."""
    story = planned(add("a", 0.9), add("b", name="b"), add("c", under="b"))
    story.fails(3)
    tree = trees.put(story.state.tree, replace(story.node("n3"), status=NodeStatus(child)))
    story.state = replace(story.state, tree=tree)
    return story


@pytest.mark.parametrize("child", ["active", "solved"])
def test_a_subtree_with_an_active_node_or_a_program_is_not_pruned(child: str) -> None:
    assert f"'n3' below it is {child}" in refusal_of(odd_subtree(child), Prune("n2"))


def test_an_edit_overtaken_by_events_is_dropped_and_recorded_and_the_rest_is_taken() -> None:
    story = waiting_for_a_plan()
    request = story.hand_out(Kind.PLAN)
    story.command(ev.PruneNode("n2"))
    plan = Plan((Update("n2", value=1.0), add("child", under="n2", name="x"), add("x's", under="x"), add("good")))
    assert kinds(story.tell(request, plan)) == ["Planned"]
    assert len(story.last(ev.Planned).dropped) == 3
    assert all("overtaken" in why for why in story.last(ev.Planned).dropped)
    assert [n.action.title for n in story.state.tree.values()][3:] == ["good"]


def test_a_wrong_edit_refuses_the_plan_even_if_another_one_was_overtaken() -> None:
    story = waiting_for_a_plan()
    request = story.hand_out(Kind.PLAN)
    story.command(ev.PruneNode("n2"))
    assert kinds(story.tell(request, Plan((Update("n2", value=1.0), Prune("n1"))))) == ["PlanRefused"]


def test_a_node_that_was_added_meanwhile_may_be_edited() -> None:
    story = waiting_for_a_plan()
    request = story.hand_out(Kind.PLAN)
    story.command(ev.AddAction("root", Action("mine")))
    assert kinds(story.tell(request, Plan((Update("n3", value=0.9),)))) == ["Planned"]
    assert story.node("n3").value == 0.9


def two_plans_at_once() -> tuple[Story, Request, Request]:
    """n1 and n2 have closed, and two planners are at work, neither of whom sees what the other will say."""
    story = planned(add("first", 0.9), add("second", 0.8), max_active=2, stagnation=1)
    one, two = story.hand_out(Kind.WRITE), story.hand_out(Kind.WRITE)
    for request in (one, two):
        story.tell(request, Refusal(Verdict.UNPARSABLE, "no code block"))
    return story, story.hand_out(Kind.PLAN), story.hand_out(Kind.PLAN)


def test_two_planners_may_be_at_work_at_once_and_both_their_plans_are_taken() -> None:
    story, one, two = two_plans_at_once()
    story.tell(two, Plan((add("tile", name="n9"), add("and unroll", under="n9"))))
    story.tell(one, Plan((add("vectorise", name="x"), add("and prefetch", under="x"))))
    parents = {n.action.title: n.parent_id for n in story.state.tree.values()}
    ids = {n.action.title: n.id for n in story.state.tree.values()}
    assert (parents["and unroll"], parents["and prefetch"]) == (ids["tile"], ids["vectorise"])


def test_the_same_action_from_a_plan_made_at_the_same_time_is_dropped() -> None:
    story, one, two = two_plans_at_once()
    story.tell(two, Plan((add("Tile  the loop"),)))
    assert kinds(story.tell(one, Plan((add("tile the loop"), add("vectorise"))))) == ["Planned"]
    assert "has come up since, as 'n3'" in story.last(ev.Planned).dropped[0]
    assert [n.action.title for n in story.state.tree.values()][3:] == ["Tile  the loop", "vectorise"]


def test_a_local_name_stays_the_plans_own_when_a_node_of_that_id_comes_up_meanwhile() -> None:
    story, one, two = two_plans_at_once()
    story.tell(two, Plan((add("tile"),)))
    assert kinds(story.tell(one, Plan((add("vectorise", name="n3"), add("child", under="n3"))))) == ["Planned"]
    assert story.node("n5").parent_id == "n4"


def test_what_a_person_pins_while_the_planner_thinks_is_left_and_the_rest_of_the_plan_is_taken() -> None:
    story = waiting_for_a_plan()
    request = story.hand_out(Kind.PLAN)
    story.command(ev.Pin("n2"))
    assert kinds(story.tell(request, Plan((Prune("n2"), add("good"))))) == ["Planned"]
    assert (story.node("n2").status, len(story.last(ev.Planned).dropped)) == (OPEN, 1)


def test_the_idea_of_a_rejected_node_may_be_inserted_elsewhere() -> None:
    story = planned(add("a", 0.9, name="a"), add("idea", under="a"))
    story.fails(3)
    story.plan(add("idea"))
    assert (story.node("n2").status, story.node("n3").status) == (PRUNED, OPEN)


def test_a_plan_that_is_due_counts_as_an_active_action() -> None:
    story = waiting_for_a_plan()
    assert not isinstance(story.asks(Kind.WRITE), Request)
    plan = story.hand_out(Kind.PLAN)
    assert not isinstance(story.asks(), Request)
    story.tell(plan, Plan())
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_a_plan_is_handed_out_once_while_it_is_out() -> None:
    story = waiting_for_a_plan()
    story.hand_out(Kind.PLAN)
    assert not isinstance(story.asks(Kind.PLAN), Request)


def test_an_empty_frontier_asks_for_a_plan_and_then_ends_the_run() -> None:
    story = planned()
    request = story.hand_out(Kind.PLAN)
    assert request.why == "empty_frontier"
    assert kinds(story.tell(request, Plan())) == ["Planned", "Ended"]
    assert story.asks() == Done("the frontier is empty and the planner has nothing to add")


def test_a_plan_for_an_empty_frontier_carries_the_run_on() -> None:
    story = planned()
    story.plan(add("a"))
    assert story.hand_out(Kind.WRITE).node_id == "n1"


def test_a_plan_refused_too_often_is_abandoned_and_the_search_goes_on() -> None:
    story = waiting_for_a_plan()
    for _ in range(3):
        assert kinds(story.plan(Prune("n9"))) == ["PlanRefused"]
    assert kinds(story.plan(Prune("n9"))) == ["PlanRefused", "PlanAbandoned"]
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_replies_that_hold_no_plan_count_as_refused() -> None:
    story = waiting_for_a_plan()
    for _ in range(4):
        story.tell(story.hand_out(Kind.PLAN), Refusal(Verdict.UNPARSABLE, "no JSON"))
    assert story.last(ev.PlanRefused).verdict is Verdict.UNPARSABLE
    assert story.last(ev.PlanAbandoned).reason == "no JSON"


def test_a_plan_lost_too_often_is_abandoned_and_the_search_goes_on() -> None:
    story = waiting_for_a_plan()
    assert kinds(story.loses(4, Kind.PLAN)) == ["WorkLost", "PlanAbandoned"]
    assert story.hand_out(Kind.WRITE).node_id == "n2"


def test_refusals_and_losses_of_a_plan_count_together() -> None:
    story = waiting_for_a_plan()
    story.loses(2, Kind.PLAN)
    story.plan(Prune("n9"))
    assert kinds(story.plan(Prune("n9"))) == ["PlanRefused", "PlanAbandoned"]


def test_a_planner_that_always_fails_ends_the_run_with_that_reason() -> None:
    story = Story(max_retries=0)
    story.loses(1, Kind.PLAN)
    assert story.loses(1, Kind.PLAN)[-1] == ev.Ended(reason="planner_failed: the machine went away")


def test_an_answer_to_an_abandoned_plan_is_noted_once() -> None:
    story = waiting_for_a_plan()
    request = story.hand_out(Kind.PLAN)
    for _ in range(4):
        story.tell(request, Lost("gone"))
        if request.id in story.state.pending:
            story.hand_out(Kind.PLAN)
    assert kinds(story.tell(request, Plan((add("late"),)))) == ["Ignored"]
    assert story.tell(request, Plan((add("late"),))) == []
    assert "n3" not in story.state.tree


def test_a_program_does_not_answer_a_plan() -> None:
    story = Story()
    with pytest.raises(InvalidReply, match="r0 wants a Plan: a Program does not answer it"):
        story.tell(story.hand_out(), program("a"))


def test_the_assessment_is_kept() -> None:
    story = Story()
    story.tell(story.hand_out(), Plan((add("a"),), assessment="memory bound"))
    assert story.last(ev.Planned).assessment == "memory bound"


def test_a_plan_may_come_after_the_work_on_other_actions_has_moved_on() -> None:
    story = planned(add("a", 0.9), add("b", 0.8), add("c", 0.1), max_active=2, budget=Budget(50))
    first = story.hand_out(Kind.WRITE)
    story.fails(3)  # n2 is rejected: a plan is due
    plan = story.hand_out(Kind.PLAN, BOB)
    story.tell(first, program("x"))
    story.measure("x", 2)
    assert kinds(story.tell(plan, Plan((add("under n1", under="n1"),)))) == ["Planned"]
    assert story.hand_out(Kind.WRITE, ANN).node_id == "n1"


def test_the_planner_does_not_prune_what_a_person_pinned_or_added() -> None:
    story = waiting_for_a_plan()
    story.command(ev.Pin("n2"))
    assert refusal_of(story, Prune("n2")) == "'n2' cannot be pruned: a person pinned 'n2'"
    story.command(ev.Pin("n2", pinned=False))
    story.command(ev.AddAction("n2", Action("mine")))
    assert refusal_of(story, Prune("n2")) == "'n2' cannot be pruned: a person added 'n3'"
