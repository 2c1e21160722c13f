"""Design 2.1: which action is next."""

from __future__ import annotations

from ksearch import events as ev
from ksearch.protocol import Kind, Request
from tests.core.story import OPEN, SOLVED, Story, add, planned


def next_node(story: Story) -> str:
    request = story.asks(Kind.WRITE)
    assert isinstance(request, Request), request
    return request.node_id


def test_the_action_of_highest_value_is_next() -> None:
    story = planned(add("low", 0.2), add("high", 0.9), add("middle", 0.5))
    assert next_node(story) == "n2"


def test_ties_go_to_the_oldest() -> None:
    story = planned(add("older", 0.7), add("younger", 0.7))
    assert next_node(story) == "n1"


def test_a_hard_action_waits_while_an_easier_one_is_open() -> None:
    story = planned(add("hard", 0.9, difficulty=5), add("easy", 0.1, difficulty=4), max_difficulty=4)
    assert next_node(story) == "n2"


def test_a_hard_action_is_taken_when_nothing_easier_is_open() -> None:
    story = planned(add("hard", 0.9, difficulty=5), max_difficulty=4)
    assert next_node(story) == "n1"


def test_an_easier_action_that_waits_for_its_parent_does_not_hold_up_a_hard_one() -> None:
    story = planned(add("hard", difficulty=5, name="h"), add("easy", 0.9, under="h", difficulty=1), max_difficulty=4)
    assert next_node(story) == "n1"


def test_a_pinned_action_goes_before_a_better_one() -> None:
    story = planned(add("high", 0.9), add("low", 0.1))
    story.command(ev.Pin("n2"))
    assert next_node(story) == "n2"


def test_a_pinned_action_goes_first_even_if_it_is_hard() -> None:
    story = planned(add("easy", 0.9, difficulty=1), add("hard", 0.1, difficulty=5), max_difficulty=4)
    story.command(ev.Pin("n2"))
    assert next_node(story) == "n2"


def test_a_pin_can_be_taken_back() -> None:
    story = planned(add("high", 0.9), add("low", 0.1))
    story.command(ev.Pin("n2"))
    story.command(ev.Pin("n2", pinned=False))
    assert next_node(story) == "n1"


def test_a_pin_is_used_up_when_its_action_starts() -> None:
    story = planned(add("mine"))
    story.command(ev.Pin("n1"))
    story.hand_out(Kind.WRITE)
    assert not story.node("n1").pinned


def test_actions_under_the_root_are_on_the_frontier_from_the_start() -> None:
    story = planned(add("first"))
    assert story.node("root").status is SOLVED
    assert next_node(story) == "n1"


def test_an_action_under_an_open_parent_waits() -> None:
    story = planned(add("parent", 0.1, name="p"), add("child", 0.9, under="p"))
    assert next_node(story) == "n1"
    story.attempt("program", 2)
    assert story.node("n2").status is OPEN
    assert next_node(story) == "n1"


def test_an_action_joins_the_frontier_when_its_parent_is_solved() -> None:
    story = planned(add("parent", 0.1, name="p"), add("child", 0.9, under="p"))
    story.attempt("program", 2)
    story.fails(3)
    story.plan()
    assert next_node(story) == "n2"


def test_one_action_at_a_time_by_default() -> None:
    story = planned(add("first", 0.9), add("second", 0.8))
    story.hand_out(Kind.WRITE)
    assert not isinstance(story.asks(), Request)


def test_as_many_actions_at_once_as_max_active_allows() -> None:
    story = planned(add("first", 0.9), add("second", 0.8), add("third", 0.7), max_active=2)
    assert story.hand_out(Kind.WRITE).node_id == "n1"
    assert story.hand_out(Kind.WRITE).node_id == "n2"
    assert not isinstance(story.asks(), Request)
