"""A recorded run measured again: its replies and decisions as they were, builds, checks and times as they are now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ksearch import events as ev
from ksearch.drivers import Evaluator
from ksearch.errors import BadInput
from ksearch.fold import fold
from ksearch.protocol import Lost
from ksearch.run import Run
from ksearch.state import State, versus
from ksearch.types import Evaluation, Node, Program, Verdict

DEMOS = Path(__file__).parents[1] / "demos"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One program of the recorded run. `fresh` is what counts: where they differ, the recorded one is history."""

    number: int  # from 1
    count: int
    node: Node
    recorded: Evaluation
    fresh: Evaluation

    @property
    def agrees(self) -> bool:
        return self.recorded.verdict is self.fresh.verdict


def demo_file(name: str) -> Path:
    """Raises:
    BadInput: no demo of that name comes with this K-Search.
    """
    path = DEMOS / f"{name}.jsonl"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in DEMOS.glob("*.jsonl")))
        raise BadInput(f"there is no demo {name!r}: choose one of {known}")
    return path


def measure_again(run: Run, events: Sequence[ev.Event], evaluator: Evaluator) -> Iterator[Measurement]:
    """Every program that the run measured, in its order, beside the programs it was measured against then.

    Raises:
        BadInput: the evaluator itself failed twice on one program.
    """
    asked = {e.request.id: e.request for e in events if isinstance(e, ev.Asked)}
    recorded = [e for e in events if isinstance(e, ev.Evaluated)]
    failed: set[str] = set()  # here and now: nothing to hold another one against

    def measure(event: ev.Evaluated) -> Evaluation:
        against = [run.program(id) for id in asked[event.request_id].against if id not in failed]
        fresh = _measure(evaluator, run.program(event.evaluation.program_id), against)
        if fresh.verdict is not Verdict.PASSED:
            failed.add(fresh.program_id)
        return fresh

    pool = ThreadPoolExecutor(2)  # one is built while another is timed
    try:
        for number, (event, fresh) in enumerate(zip(recorded, pool.map(measure, recorded), strict=True), 1):
            node = run.state.tree[asked[event.request_id].node_id]
            yield Measurement(number, len(recorded), node, event.evaluation, fresh)
    finally:
        pool.shutdown(cancel_futures=True)


def _measure(evaluator: Evaluator, program: Program, against: Sequence[Program]) -> Evaluation:
    result = evaluator.evaluate(program, against)
    if isinstance(result, Lost):
        result = evaluator.evaluate(program, against)
    if isinstance(result, Lost):
        raise BadInput(f"program {program.id[:12]} could not be measured here: {result.reason}")
    return result.evaluation


def with_fresh_numbers(events: Sequence[ev.Event], fresh: Sequence[Evaluation]) -> State:
    """The state at the end of the run, its decisions as recorded, its evaluations and ratios as measured now."""
    found = {e.program_id: e for e in fresh}
    state = State()
    for event in events:
        state = fold([_renewed(state, event, found)], state)
    return state


def _renewed(state: State, event: ev.Event, found: dict[str, Evaluation]) -> ev.Event:
    match event:
        case ev.Evaluated(evaluation=then) if then.program_id in found:
            return replace(event, evaluation=found[then.program_id])
        case ev.Judged(node_id=node_id, attempt=index):
            cycle = state.cycles[node_id]
            done = state.evaluations.get(cycle.attempts[index].program_id or "")
            if done is None:
                return event
            best, parent = versus(state, done, cycle.best_id), versus(state, done, cycle.base_id)
            return replace(event, versus_best=best, versus_parent=parent or done.speedup)
        case ev.CycleClosed(node_id=node_id, program_id=str() as program_id):
            attempts = state.cycles[node_id].attempts
            judged = next((a.judged for a in reversed(attempts) if a.program_id == program_id and a.judged), None)
            done = state.evaluations[program_id]
            return replace(event, speedup=done.speedup, gain=judged.versus_parent if judged else None)
    return event
