"""The circuit breaker: when nothing is sent any more, who probes, and what brings it back."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from ksearch.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    ProviderDown,
    QuotaExhausted,
    RateLimited,
)
from ksearch.models import Answer, Call
from ksearch.models.outage import LONGEST_S, Breaker, Guarded, OutagePolicy, provider_of

CALL = Call("writer", "write it")
FINE = Answer("ok", b"ok", "stop", "m")


@dataclass
class Scripted:
    """A model that does what it is told next; when nothing is left, it answers."""

    script: list[BaseException] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    name: str = "m"
    context_tokens: int | None = None

    def complete(self, call: Call) -> Answer:
        self.calls.append(call)
        if self.script:
            raise self.script.pop(0)
        return FINE


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def down(**more: float) -> ModelError:
    return ModelUnavailable("connection refused", **more)  # type: ignore[arg-type]


@dataclass
class House:
    clock: Time = field(default_factory=Time)
    model: Scripted = field(default_factory=Scripted)

    def __post_init__(self) -> None:
        policy = OutagePolicy(3, first_wait_s=10, max_wait_s=40, patience_s=1000, named_wait_s=30)
        self.breaker = Breaker("openai", policy, self.clock)
        self.guarded = Guarded(self.model, self.breaker)

    def fails(self, *errors: ModelError) -> ModelError:
        self.model.script += errors
        caught: ModelError | None = None
        for _ in errors:
            with pytest.raises(ModelError) as found:
                self.guarded.complete(CALL)
            caught = found.value
        assert caught is not None
        return caught

    def wait_out(self) -> None:
        assert self.breaker.until is not None
        self.clock.now = self.breaker.until


def test_failures_that_are_not_in_a_row_open_nothing() -> None:
    house = House()
    for _ in range(5):
        assert house.fails(down(), down()).until is None
        house.guarded.complete(CALL)
    assert house.breaker.until is None


def test_after_some_in_a_row_nothing_is_sent_and_nothing_is_billed() -> None:
    house = House()
    opened = house.fails(down(), down(), down())
    assert opened.until == house.breaker.until
    assert 1008 <= (opened.until or 0) <= 1012
    with pytest.raises(ProviderDown, match="openai is waited for: connection refused") as refused:
        house.guarded.complete(CALL)
    assert refused.value.until == opened.until
    assert not refused.value.maybe_billed
    assert refused.value.transient
    assert len(house.model.calls) == 3


def test_then_one_call_probes_without_repetitions_and_a_reply_closes_it() -> None:
    house = House()
    house.fails(down(), down(), down())
    house.wait_out()
    assert house.guarded.complete(CALL) == FINE
    assert house.model.calls[-1].once
    assert house.breaker.until is None
    assert house.fails(down(), down()).until is None, "it counts afresh"
    assert not house.model.calls[-1].once


def test_each_probe_that_fails_waits_twice_as_long_up_to_a_limit() -> None:
    house = House()
    house.fails(down(), down(), down())
    waits = []
    for _ in range(5):
        house.wait_out()
        house.fails(down())
        waits.append((house.breaker.until or 0) - house.clock.now)
    for wait, nominal in zip(waits, [20, 40, 40, 40, 40], strict=True):
        assert 0.8 * nominal <= wait <= 1.2 * nominal


def test_a_wait_that_the_provider_names_is_taken_at_its_word_at_once() -> None:
    house = House()
    error = house.fails(RateLimited("slow down", retry_after_s=500))
    assert error.until == 1500
    house.wait_out()
    assert house.guarded.complete(CALL) == FINE


def test_a_quota_with_a_time_comes_back_by_itself_and_one_without_needs_a_person() -> None:
    house = House()
    dated = house.fails(QuotaExhausted("hit your limit", retry_after_s=3600))
    assert dated.transient
    assert dated.until == 4600
    house.wait_out()
    empty = house.fails(QuotaExhausted("no credit"))
    assert not empty.transient
    assert empty.until is None
    assert house.breaker.until is None


def test_a_short_wait_that_is_named_is_no_outage_but_is_kept_once_there_is_one() -> None:
    house = House()
    short = [RateLimited("slow down", retry_after_s=25) for _ in range(3)]
    assert house.fails(*short[:2]).until is None
    assert house.fails(short[2]).until == 1025


@pytest.mark.parametrize("error", [BadKey("no"), ContextTooLong("long")], ids=["key", "long"])
def test_a_provider_that_says_no_is_there(error: ModelError) -> None:
    house = House()
    assert house.fails(down(), down(), error, down(), down()).until is None
    assert not error.transient


def test_a_wait_of_weeks_is_left_to_people() -> None:
    error = House().fails(RateLimited("come back next month", retry_after_s=LONGEST_S + 1))
    assert not error.transient
    assert error.until is None
    assert "resume the run when it is back" in str(error)


def test_patience_ends() -> None:
    house = House()
    house.fails(down(), down(), down())
    house.clock.now += 1000
    error = house.fails(down())
    assert not error.transient
    assert error.until is None
    assert house.guarded.complete(CALL) == FINE, "after somebody has let it go on"


def test_somebody_can_have_it_tried_at_once() -> None:
    house = House()
    house.fails(down(), down(), down())
    house.breaker.try_now()
    assert house.guarded.complete(CALL) == FINE


def test_a_probe_that_is_interrupted_leaves_the_next_to_another() -> None:
    house = House()
    house.fails(down(), down(), down())
    house.wait_out()
    house.model.script.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        house.guarded.complete(CALL)
    assert house.guarded.complete(CALL) == FINE


@dataclass
class Slow(Scripted):
    """Takes its time over a call, so that others come in the meantime."""

    gate: threading.Event = field(default_factory=threading.Event)
    slow: bool = False

    def complete(self, call: Call) -> Answer:
        if self.slow:
            self.calls.append(call)
            assert self.gate.wait(10)
            if self.script:
                raise self.script.pop(0)
            return FINE
        return super().complete(call)


@pytest.mark.parametrize("up", [True, False])
def test_of_many_callers_one_probes_and_the_others_wait_for_what_comes_of_it(up: bool) -> None:
    model = Slow()
    house = House(model=model)
    house.fails(down(), down(), down())
    house.wait_out()
    model.slow, model.script = True, [] if up else [down()]
    came: list[object] = []

    def call() -> None:
        try:
            came.append(house.guarded.complete(CALL))
        except ModelError as error:
            came.append(error)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while len(model.calls) < 4 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)
    assert len(model.calls) == 4, "only the probe is out"
    model.gate.set()
    for thread in threads:
        thread.join(10)
    if up:
        assert came == [FINE] * 8
        assert len(model.calls) == 3 + 8
    else:
        assert len(model.calls) == 4
        assert sum(isinstance(error, ProviderDown) for error in came) == 7
        assert len({error.until for error in came if isinstance(error, ModelError)}) == 1


def test_whose_outage_it_is() -> None:
    assert provider_of("openai:a", None) == provider_of("openai:b", None) == "openai"
    assert provider_of("openai:a", "http://h/v1") != provider_of("openai:a", None)
    assert provider_of("openai:a@http://h/v1#KEY", None) == provider_of("openai:b", "http://h/v1")
    assert provider_of("openai:a@http://h/v1", "http://other/v1") == provider_of("openai:a", "http://h/v1")
    assert provider_of("command:claude --model opus", None) == provider_of("command:pass=KEY claude", None)
