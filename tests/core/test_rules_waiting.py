"""A provider that is down: the run pauses by itself, until a time that its log names, and goes on by itself."""

from __future__ import annotations

import pytest

from ksearch import events as ev
from ksearch.errors import InvalidCommand
from ksearch.protocol import Cost, Kind, Lost, Request, Wait
from tests.core.story import Story, add, kinds, planned, program


def down(story: Story, kind: Kind = Kind.WRITE, until: float = 60, billed: bool = False) -> list[ev.Event]:
    return story.tell(story.hand_out(kind, seconds=1000), Lost("the provider is down", billed, until=until))


def test_the_run_pauses_at_once_and_says_until_when() -> None:
    story = planned(add("a"))
    assert kinds(down(story)) == ["WorkLost", "Paused"]
    assert story.asks() == Wait(
        "paused: until 1970-01-01 00:01:00 UTC, then asked again: the provider is down", until=60
    )


def test_it_goes_on_by_itself_at_that_time_and_not_before() -> None:
    story = planned(add("a"))
    down(story)
    assert story.passes(59) == []
    assert kinds(story.passes(1)) == ["Commanded"]
    assert story.state.paused is None
    request = story.asks()
    assert isinstance(request, Request)
    assert request.kind is Kind.WRITE


def test_nothing_is_spent_by_what_was_not_sent() -> None:
    story = planned(add("a"), reserve=Cost(100, 1.0))
    before = story.state.spent
    down(story)
    assert story.state.spent == before
    assert story.state.reserved == {}
    assert (story.state.attempts, story.state.evaluated) == (1, 0)


def test_however_long_it_takes_no_plan_is_given_up_and_no_attempt_is_lost() -> None:
    story = Story()
    for _ in range(20):
        assert kinds(down(story, Kind.PLAN, until=story.now + 10)) == ["WorkLost", "Paused"]
        story.passes(10)
    assert story.state.exhausted is None
    story = planned(add("a"))
    for _ in range(20):
        down(story, until=story.now + 10)
        story.passes(10)
    assert story.state.attempts == 1
    story.write("a")


def test_a_second_loss_only_makes_the_pause_longer() -> None:
    story = planned(add("a"), add("b"), add("c"), max_active=3)
    first, second, third = (story.hand_out(Kind.WRITE, seconds=1000) for _ in range(3))
    story.tell(first, Lost("down", billed=False, until=60))
    assert kinds(story.tell(second, Lost("down", billed=False, until=30))) == ["WorkLost"]
    assert kinds(story.tell(third, Lost("down", billed=False, until=90))) == ["WorkLost", "Paused"]
    assert story.asks() == Wait("paused: until 1970-01-01 00:01:30 UTC, then asked again: down", until=90)


def test_a_reply_that_comes_in_the_meantime_is_taken() -> None:
    story = planned(add("a"), add("b"), max_active=2)
    first, second = (story.hand_out(Kind.WRITE, seconds=1000) for _ in range(2))
    story.tell(first, Lost("down", billed=False, until=60))
    assert kinds(story.tell(second, program("b"))) == ["Written"]
    assert story.state.paused


def test_a_persons_pause_outlasts_it() -> None:
    story = planned(add("a"), add("b"), max_active=2)
    first, second = (story.hand_out(Kind.WRITE, seconds=1000) for _ in range(2))
    story.tell(first, Lost("down", billed=False, until=60))
    story.command(ev.Pause("lunch"))
    assert kinds(story.tell(second, Lost("down", billed=False, until=90))) == ["WorkLost"]
    assert story.passes(200) == []
    assert story.asks() == Wait("paused: lunch")
    with pytest.raises(InvalidCommand, match="paused already"):
        story.command(ev.Pause())


def test_a_person_can_let_it_go_on_sooner() -> None:
    story = planned(add("a"))
    down(story)
    story.command(ev.Resume())
    assert isinstance(story.asks(), Request)
    assert story.passes(100) == []


def test_a_stop_ends_it_and_nothing_wakes_it_again() -> None:
    story = planned(add("a"))
    down(story)
    story.command(ev.Stop("enough"))
    assert story.state.ended == "stopped: enough"
    assert story.passes(100) == []


def test_a_loss_while_it_is_stopping_does_not_hold_it_up() -> None:
    story = planned(add("a"))
    request = story.hand_out(Kind.WRITE, seconds=1000)
    story.command(ev.Stop("enough"))
    assert "Ended" in kinds(story.tell(request, Lost("down", billed=False, until=60)))


def test_what_only_a_person_can_mend_takes_the_place_of_what_passes() -> None:
    story = planned(add("a"), add("b"), max_active=2)
    first, second = (story.hand_out(Kind.WRITE, seconds=1000) for _ in range(2))
    story.tell(first, Lost("down", billed=False, until=60))
    story.tell(second, Lost("no key", billed=False, again=False))
    assert story.passes(100) == []
    assert story.asks() == Wait("paused: no key")


def test_a_time_that_is_over_already_is_no_pause() -> None:
    story = planned(add("a"))
    assert kinds(down(story, until=0)) == ["WorkLost"]
