"""How much is at work at once: by what was asked for, or by what the log shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ksearch import events as ev
from ksearch.config import RunConfig, changed, load
from ksearch.definition import TaskSpec
from ksearch.drivers import Measured, drive, drive_many
from ksearch.errors import BadInput, ConfigError, EvaluatorError
from ksearch.evaluators import local
from ksearch.evaluators.fleet import Fleet
from ksearch.protocol import Holder, Kind, Lost, Request
from ksearch.run import Run
from ksearch.service.fleets import LocalMember, lost, measurers
from ksearch.service.parallel import MOST_PER_DEVICE, Parallel, shape
from ksearch.store import open_store
from ksearch.tasks import load_task
from ksearch.testing.fakes import fake_desk
from ksearch.types import Evaluation, Program, Verdict

ME = Holder("me")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def begun(clock: Clock | None = None, **settings: object) -> Run:
    loaded = load({"evaluations": 60, "stagnation": 3, **settings}, {})
    store = open_store("sqlite:///:memory:")
    return Run.create(store, "run", loaded.config.search, loaded.context(), clock or Clock())


def works(run: Run, clock: Clock, model_s: float, bench_s: float, evaluations: int) -> None:
    """One after the other, each call and each evaluation taking its time."""
    desk = fake_desk()
    while run.state.evaluated < evaluations:
        request = run.take(ME)
        assert isinstance(request, Request), request
        clock.now += bench_s if request.kind is Kind.EVALUATE else model_s
        desk.serve(run, request, ME)


def test_places_are_divided_evenly_between_actions_and_programs() -> None:
    assert [shape(n) for n in (1, 2, 4, 8, 16, 40)] == [(1, 1), (3, 1), (3, 2), (4, 3), (6, 4), (10, 6)]
    assert all(active * width >= n for n in range(1, 300) for active, width in [shape(n)])


def test_a_number_is_a_number_and_stands_in_the_log_once() -> None:
    run = begun()
    at_once = Parallel(run, "8", devices=1)
    pools = [at_once.pools() for _ in range(3)]
    assert {(p.minds, p.benches) for p in pools} == {(8, 3)}
    assert [e.command for e in run.log() if isinstance(e, ev.Commanded)] == [ev.SetParallel(4, 3)]


def test_what_the_settings_say_of_places_goes_first() -> None:
    run = begun(max_active=2, width=5)
    Parallel(run, "8", devices=1).pools()
    assert (run.state.config.max_active, run.state.config.width) == (2, 5)
    assert len(run.log()) == 1


def test_auto_begins_with_a_guess_and_follows_the_latencies() -> None:
    clock = Clock()
    run = begun(clock)
    at_once = Parallel(run, "auto", devices=1)
    assert at_once.pools().minds == 8
    works(run, clock, model_s=20, bench_s=10, evaluations=12)
    assert at_once.pools().minds == 4, "1.25 times what two devices' worth of waiting and one of measuring take"
    works(run, clock, model_s=200, bench_s=1, evaluations=50)
    assert at_once.pools().minds == MOST_PER_DEVICE


def test_auto_learns_from_the_log_of_a_run_that_goes_on() -> None:
    clock = Clock()
    run = begun(clock)
    works(run, clock, model_s=30, bench_s=10, evaluations=10)
    assert Parallel(run, "auto", devices=4).number == 20


def test_the_straight_line_leaves_no_trace() -> None:
    run = begun()
    Parallel(run, "1", devices=1).settle()
    assert len(run.log()) == 1
    drive(run, fake_desk())
    assert not [e for e in run.log() if isinstance(e, ev.Commanded)]


def test_many_at_once_by_the_settings_come_to_the_same_end() -> None:
    run = begun(parallel=6)
    drive_many(run, fake_desk(), Parallel(run, "6", devices=2).pools)
    assert run.state.evaluated == 60


def test_the_number_may_be_written_as_one_or_as_text() -> None:
    assert [load({}, {"KSEARCH_PARALLEL": text}).config.parallel for text in ("auto", "12")] == ["auto", "12"]
    assert load({"parallel": 12}, {}).config.parallel == "12"
    for wrong in ("0", "many", "-1", "1000"):
        with pytest.raises(ConfigError, match="flag --parallel: parallel = .* cannot be used"):
            load({"parallel": wrong}, {})


def test_a_resumed_run_may_go_on_with_other_workers() -> None:
    config = RunConfig(parallel="4", gpus=2)
    assert changed(config, {"parallel": None, "gpus": 3}) == RunConfig(parallel="4", gpus=3)
    with pytest.raises(ConfigError, match="parallel"):
        changed(config, {"parallel": "lots"})


@pytest.mark.parametrize(("settings", "words"), [
    ({"gpus": 2, "parallel": "auto"}, "runs on the CPU, where one program is timed at a time: leave out --gpus"),
    ({"ray_address": "head:6379"}, "add --pool ray"),
])  # fmt: skip
def test_settings_that_contradict_each_other_are_said(settings: dict[str, object], words: str) -> None:
    task = load_task("softmax")
    assert isinstance(task.spec, TaskSpec)
    with pytest.raises(BadInput) as caught, measurers(RunConfig(**settings), task):  # type: ignore[arg-type]
        pass
    assert words in str(caught.value)


@dataclass
class OnGpu:
    """A local evaluator on a GPU that has gone once its processes have to be started anew."""

    gone: bool
    opened: int = 0

    def open(self) -> None:
        self.opened += 1
        if self.gone and self.opened > 1:
            raise EvaluatorError("this task needs an NVIDIA GPU, and no driver shows one here")

    def close(self) -> None: ...
    def build(self, program: Program) -> None: ...

    def evaluate(self, program: Program, against: Sequence[Program]) -> local.Measured:
        if self.gone:
            return local.Measured(Lost("time: the oracle is gone"), {})
        return local.Measured(Evaluation(program.id, Verdict.COMPILE_ERROR, "no"), {"gpu": "another"})


def test_a_gpu_that_has_gone_is_put_aside_and_the_others_measure_what_it_lost() -> None:
    said: list[str] = []
    members = [LocalMember(OnGpu(n == 0), f"GPU {n}", "H200") for n in range(3)]  # type: ignore[arg-type]
    with Fleet(members, lost=lost, tell=said.append) as fleet:
        programs = [Program({"k.cu": f"// {n}"}, "k.cu::run", "cuda") for n in range(6)]
        found = [fleet.evaluate(program) for program in programs]
        assert [m.label for m in fleet.working] == ["GPU 1", "GPU 2"]
    assert [f.evaluation.program_id for f in found if isinstance(f, Measured)] == [p.id for p in programs]
    assert said == ["GPU 0 is put aside, its work goes to the others: time: the oracle is gone"]
