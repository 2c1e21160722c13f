"""A tracker may do what it likes: the search goes on, and ends, as if it were not there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from unittest import mock

import pytest

from ksearch.codec import encode_event
from ksearch.drivers import drive
from ksearch.errors import BadInput
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.service import tracking
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk
from ksearch.trackers import Call, Closed, End, Guarded, Measured, Start, guard
from ksearch.trackers.base import Fact


class Kept:
    """A tracker that keeps what it is told; `fails` may raise."""

    def __init__(self, fails: Callable[[Fact], object] = lambda _: None) -> None:
        self.facts: list[Fact] = []
        self.fails = fails
        self.closed = False

    def take(self, fact: Fact) -> None:
        self.fails(fact)
        self.facts.append(fact)

    def close(self) -> None:
        self.closed = True


def search(make: Callable[[], object] | None, kinds: tuple[str, ...] = ("wandb",)) -> tuple[list[dict], list[str]]:
    """A whole search with a tracker; returns its events without times, and what was said."""
    run = Run.create(open_store(":memory:"), "fake-1", SearchConfig(Budget(8)), {"task": "softmax"}, clock=lambda: 1.0)
    said: list[str] = []
    with (
        mock.patch.object(tracking, "open_tracker", return_value=make),
        mock.patch.object(guard, "CLOSE_S", 1.0),
        tracking.tracked(run, kinds if make else (), said.append),
    ):
        drive(run, fake_desk(1), sleep=lambda _: None)
    return [encode_event(event) for event in run.log()], said


@pytest.fixture(scope="module")
def untracked() -> list[dict]:
    return strip(search(None)[0])


def strip(events: list[dict]) -> list[dict]:
    return [{k: v for k, v in event.items() if k not in ("holder",)} for event in events]


def test_facts_come_in_order_and_the_end_is_the_last(untracked: list[dict]) -> None:
    kept = Kept()
    events, said = search(lambda: kept)
    assert said == []
    assert kept.closed
    assert isinstance(kept.facts[0], Start)
    assert isinstance(kept.facts[-1], End)
    assert kept.facts[-1].reason == "budget: evaluations"
    count = {kind: sum(isinstance(f, kind) for f in kept.facts) for kind in (Call, Measured, Closed)}
    types = [event["type"] for event in events]
    assert count[Measured] == types.count("evaluated") == 8
    assert count[Call] == types.count("received")
    assert count[Closed] == types.count("cycle_closed") > 0
    assert strip(events) == untracked


def fault(error: BaseException) -> Callable[[Fact], None]:
    def fails(_: Fact) -> None:
        raise error

    return fails


@pytest.mark.parametrize("error", [ValueError("x" * 5000), SystemExit(3), MemoryError(), OSError("no line")])
def test_a_tracker_that_raises_changes_nothing(untracked: list[dict], error: BaseException) -> None:
    events, said = search(lambda: Kept(fault(error)))
    assert strip(events) == untracked
    assert type(error).__name__ in said[0]
    assert "ksearch track RUN --to wandb" in said[0]
    assert len(said) == 2  # what went wrong, and that it is left alone; not once for each event
    assert all(len(line) < 600 for line in said)


def test_a_tracker_that_cannot_be_opened_changes_nothing(untracked: list[dict]) -> None:
    def make() -> Kept:
        raise RuntimeError("no such project")

    events, said = search(make)
    assert strip(events) == untracked
    (line,) = said
    assert line.startswith("tracker wandb: it cannot be started: RuntimeError: no such project. ")


def test_a_tracker_that_hangs_is_left_behind(untracked: list[dict]) -> None:
    for_ever = threading.Event()
    events, said = search(lambda: Kept(lambda _: for_ever.wait(60)))
    for_ever.set()
    assert strip(events) == untracked
    assert "has not finished within 1 s" in said[0]


def test_a_tracker_that_hangs_while_it_opens_is_left_behind(untracked: list[dict]) -> None:
    for_ever = threading.Event()
    events, said = search(lambda: Kept() if for_ever.wait(60) else None)
    for_ever.set()
    assert strip(events) == untracked
    assert "has not finished within 1 s" in said[0]


def test_one_failure_does_not_lose_the_rest(untracked: list[dict]) -> None:
    fails = iter([RuntimeError("once")])

    def once(_: Fact) -> None:
        if error := next(fails, None):
            raise error

    kept = Kept(once)
    search(lambda: kept)
    assert isinstance(kept.facts[-1], End)
    assert sum(isinstance(f, Measured) for f in kept.facts) == 8


def test_a_slow_tracker_loses_what_does_not_fit_and_says_so() -> None:
    go, said = threading.Event(), []
    with mock.patch.object(guard, "MAX_QUEUE", 3):
        guarded = Guarded("otel", lambda: Kept(lambda _: go.wait(10)), said.append)
        for i in range(10):
            guarded.take(End(float(i), ""))
    go.set()
    assert not guarded.close(5)
    assert guarded.dropped >= 6
    assert "came faster" in said[-1]


def test_our_own_mistake_stops_the_telling_not_the_search(untracked: list[dict]) -> None:
    with mock.patch("ksearch.trackers.feed.Feed._facts", side_effect=KeyError("r9")):
        events, said = search(Kept)
    assert strip(events) == untracked
    assert any("no longer tracked: KeyError" in line for line in said)


def test_a_resumed_run_tells_those_who_remember_everything_and_others_what_is_new() -> None:
    run = Run.create(open_store(":memory:"), "fake-1", SearchConfig(Budget(4)), {"task": "softmax"})
    drive(run, fake_desk(1), sleep=lambda _: None)
    trackers = {"wandb": Kept(), "otel": Kept()}
    with (
        mock.patch.object(tracking, "open_tracker", lambda kind, *_: lambda: trackers[kind]),
        tracking.tracked(run, ("wandb", "otel"), pytest.fail),
    ):
        pass
    assert sum(isinstance(f, Measured) for f in trackers["wandb"].facts) == 4
    assert [type(f) for f in trackers["otel"].facts] == [Start]


def test_track_tells_of_a_whole_run_afterwards() -> None:
    run = Run.create(open_store(":memory:"), "fake-1", SearchConfig(Budget(4)), {"task": "softmax"})
    drive(run, fake_desk(1), sleep=lambda _: None)
    kept = Kept()
    with mock.patch.object(tracking, "open_tracker", return_value=lambda: kept):
        assert tracking.track(run, "wandb", pytest.fail)
    assert sum(isinstance(f, Measured) for f in kept.facts) == 4
    assert kept.closed


def test_an_unknown_tracker_is_refused_before_anything_begins() -> None:
    with pytest.raises(BadInput, match="'weights' is no tracker: name one of otel, wandb, mlflow"):
        tracking.wanted("otel, weights")
    assert tracking.wanted(None) == tracking.wanted("") == ()


def test_a_missing_library_names_its_extra() -> None:
    missing = mock.patch("ksearch.trackers.opening.find_spec", return_value=None)
    with missing, pytest.raises(BadInput, match=r"pip install 'k-search\[mlflow\]'"):
        tracking.wanted("mlflow")
