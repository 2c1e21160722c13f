"""A recorded run measured again: decisions as they were, numbers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ksearch import events as ev
from ksearch.drivers import Measured, drive
from ksearch.errors import BadInput
from ksearch.protocol import Budget, Lost, SearchConfig
from ksearch.run import Run
from ksearch.service.replaying import demo_file, measure_again, with_fresh_numbers
from ksearch.store import open_store
from ksearch.tasks import load_task
from ksearch.testing.fakes import FakeEvaluator, RecordedEvaluator, fake_desk
from ksearch.types import Evaluation, Program, Verdict
from ksearch.views import tree_text


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run.create(open_store(tmp_path / "runs.db"), "run", SearchConfig(Budget(25), stagnation=3))
    drive(run, fake_desk())
    return run


def test_measured_the_same_it_gives_the_same_state(run: Run) -> None:
    events = run.log()
    found = list(measure_again(run, events, FakeEvaluator()))
    assert [m.number for m in found] == list(range(1, 26))
    assert all(m.agrees for m in found)
    assert with_fresh_numbers(events, [m.fresh for m in found]) == run.state


def test_measured_otherwise_the_decisions_stay_and_the_numbers_are_the_new_ones(run: Run) -> None:
    events = run.log()
    found = list(measure_again(run, events, FakeEvaluator(seed=9)))
    assert not all(m.agrees for m in found)
    state = with_fresh_numbers(events, [m.fresh for m in found])
    assert [n.status for n in state.tree.values()] == [n.status for n in run.state.tree.values()]
    fresh = {m.fresh.program_id: m.fresh for m in found}
    for node in state.tree.values():
        if node.program_id:
            assert node.speedup == fresh[node.program_id].speedup
    assert tree_text(state)


def test_nothing_is_held_against_a_program_that_fails_here(run: Run) -> None:
    events = run.log()
    rivals = [id for e in events if isinstance(e, ev.Asked) for id in e.request.against]
    often = max(rivals, key=rivals.count)
    seen: list[list[str]] = []

    @dataclass
    class Elsewhere(FakeEvaluator):
        def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
            seen.append([p.id for p in against])
            if program.id == often:
                return Measured(Evaluation(often, Verdict.TIMEOUT, "too slow here", "check"))
            return super().evaluate(program, against)

    list(measure_again(run, events, Elsewhere()))
    assert rivals.count(often) > 2
    # One that was under way already may have it.
    assert sum(often in against for against in seen) <= 1


def test_a_program_that_cannot_be_measured_here_stops_the_replay_with_its_reason(run: Run) -> None:
    with pytest.raises(BadInput, match="could not be measured here: .* not in the record"):
        list(measure_again(run, run.log(), RecordedEvaluator({})))


def test_replaying_records_nothing(run: Run) -> None:
    seq = run.seq
    list(measure_again(run, run.log(), FakeEvaluator()))
    assert Run(run.store, "run").seq == seq
    assert isinstance(run.log()[-1], ev.Ended)


def test_an_unknown_demo_is_named_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="there is no demo 'nothing'"):
        demo_file("nothing")


# Recorded before its tolerance was widened: what passed then passes now.
WIDENED = {"softmax": "3e396a749dc1ebc5f6f18e940d2411d901ee9b6be44b248a18e72ca8e96d251f"}


@pytest.mark.parametrize(("name", "task"), [("gemm", "gemm"), ("softmax", "softmax"), ("laptop", "softmax")])
def test_the_shipped_demos_open_and_are_of_a_bundled_task(name: str, task: str) -> None:
    store = open_store(demo_file(name))
    run = Run(store, f"{name}-demo")
    assert run.state.ended
    assert run.state.evaluated >= 24
    assert run.state.context["task_hash"] in (load_task(task).hash, WIDENED.get(task))
