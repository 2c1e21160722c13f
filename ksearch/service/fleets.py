"""Who measures for a run: this machine's CPU, its GPUs, or those of a cluster, by the run's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from ksearch.config import RunConfig
from ksearch.drivers import Evaluator, Measured
from ksearch.errors import BadInput, EvaluatorError
from ksearch.evaluators import gpus, machine
from ksearch.evaluators.builder import BuildFailed
from ksearch.evaluators.builds import Builds
from ksearch.evaluators.fleet import Fleet
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.raypool import RayPool
from ksearch.protocol import Lost
from ksearch.service.measuring import Bench, machine_facts
from ksearch.tasks import Task
from ksearch.types import Program

MOST_BUILDS = 16


@dataclass(frozen=True)
class Measurers:
    """Ready to work. `devices`: programs that can be timed at once."""

    evaluator: Evaluator
    facts: Callable[[], str | None]
    devices: int = 1


@dataclass(frozen=True)
class LocalMember:
    """One device of this host, as a fleet's member."""

    local: LocalEvaluator
    label: str
    model: str

    def open(self) -> None:
        self.local.open()

    def close(self) -> None:
        self.local.close()

    def build(self, program: Program) -> None:
        # What fails is told when the program is evaluated, also that the device has gone: then others take over.
        with suppress(BuildFailed, EvaluatorError, OSError):
            self.local.open()
            self.local.build(program)

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        return Bench(self.local).evaluate(program, against)


@contextmanager
def measurers(config: RunConfig, task: Task, tell: Callable[[str], None] = lambda _: None) -> Iterator[Measurers]:
    """Open all that measures, and close it afterwards.

    Args:
        tell: is told in a sentence when a device is put aside.

    Raises:
        BadInput: the settings contradict each other or the task.
        EvaluatorError: the task does not work here, or the devices are not there.
    """
    _check(config, task)
    options = EvaluatorOptions(profile="best")
    if config.pool == "ray":
        place = {"address": config.ray_address, "model": config.gpu_model}
        with RayPool(task.spec, task.folder, gpus=config.gpus, options=options, **place) as pool:
            yield Measurers(Bench(pool), lambda: None, pool.devices)
        return
    found = gpus.chosen(config.gpus) if task.spec.device == "cuda" and config.parallel != "1" else []
    if len(found) > 1:
        with Fleet(members(task, found, options), lost=lost, tell=tell) as fleet:
            first = fleet.working[0]
            assert isinstance(first, LocalMember)
            yield Measurers(fleet, lambda: machine_facts(first.local), len(fleet.working))
        return
    if config.parallel != "1":
        options = replace(options, builds_at_once=_builds(machine.cores()[0]))
    with LocalEvaluator(task.spec, task.folder, options=options) as local:
        yield Measurers(Bench(local), lambda: machine_facts(local))


def _check(config: RunConfig, task: Task) -> None:
    if config.gpus is not None and task.spec.device == "cpu":
        raise BadInput(f"task {task.name} runs on the CPU, where one program is timed at a time: leave out --gpus")
    check_where(config)


def check_where(config: RunConfig) -> None:
    """Raises:
    BadInput: what the settings say of where to measure contradicts itself, whatever the task.
    """
    if config.gpus is not None and config.parallel == "1":
        raise BadInput("--gpus says on how many GPUs to measure at once: add --parallel auto, or a number")
    if config.pool == "local" and (config.ray_address or config.gpu_model):
        raise BadInput("--ray-address and --gpu-model are about a Ray cluster: add --pool ray")


def members(task: Task, found: Sequence[gpus.Gpu], options: EvaluatorOptions) -> list[LocalMember]:
    """One evaluator per GPU, each with its own oracle, lease and part of the host's cores; builds are shared."""
    cores, builds = machine.cores()[0], Builds()
    made = []
    for number, gpu in enumerate(found):
        mine = cores[number * len(cores) // len(found) : (number + 1) * len(cores) // len(found)] or cores
        own = replace(options, gpu=str(gpu["uuid"]), cores=mine, builds_at_once=_builds(mine))
        local = LocalEvaluator(task.spec, task.folder, options=own)
        local.builds = builds
        made.append(LocalMember(local, gpus.label(gpu), str(gpu["name"])))
    return made


def lost(found: Measured | Lost) -> str | None:
    return found.reason if isinstance(found, Lost) else None


def _builds(cores: Sequence[int]) -> int:
    return max(2, min(MOST_BUILDS, len(cores)))
