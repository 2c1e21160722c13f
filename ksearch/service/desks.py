"""Who answers a run that goes on in this process, by the settings it was begun with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ksearch.config import RunConfig
from ksearch.drivers import Desk, Evaluator
from ksearch.errors import BadInput
from ksearch.evaluators.local import LocalEvaluator
from ksearch.events import Asked, Received
from ksearch.models import AgentModel, Model, Recorder, TranscriptModel, open_model
from ksearch.protocol import Kind
from ksearch.run import Run
from ksearch.search import ALL_KINDS
from ksearch.service.beginning import Setting, log_of
from ksearch.service.measuring import Bench, machine_facts
from ksearch.service.minds import ROLES, ModelMind
from ksearch.tasks import Task

FAKE = "fake"  # for tests of what surrounds a search: deterministic, measures nothing
MakeDesk = Callable[[Run, Setting], Desk]


@dataclass(frozen=True)
class Staff:
    """Everybody who is needed, ready to work; nothing has been spent. `kinds`: what they can answer. `machine`: what
    a run's log is to say of the machine that measures, for prompts; asked for before a run begins."""

    desk: MakeDesk
    kinds: frozenset[Kind]
    machine: Callable[[], str | None] = lambda: None


@contextmanager
def staffed(config: RunConfig, task: Task | None) -> Iterator[Staff]:
    """Open models and evaluator, and close them afterwards.

    Raises:
        ModelSetupError: a model cannot be used.
        EvaluatorError: the task's baseline or reference does not work on this machine.
        BadInput: there is no task, so that nobody here can answer.
    """
    if config.model.partition(":")[0] == FAKE:
        yield Staff(lambda *_: _fake(config), ALL_KINDS)
        return
    planner, writer = _models(config)
    models = {Kind.PLAN: planner, Kind.WRITE: writer}
    answered = frozenset(kind for kind, model in models.items() if not isinstance(model, AgentModel))
    if task is None:
        raise BadInput(
            "a model needs a task to be asked about: --task NAME or FOLDER"
            if answered
            else "a run without a task is carried on by hand: `ksearch ask` hands out its work, `ksearch tell` takes it"
        )
    with LocalEvaluator(task.spec, task.folder) as local:
        kinds = answered | {Kind.EVALUATE}
        yield Staff(lambda run, at: _desk(run, at, planner, writer, Bench(local)), kinds, lambda: machine_facts(local))


def _models(config: RunConfig) -> tuple[Model, Model]:
    specs = [config.planner_model or config.model, config.writer_model or config.model]
    record = Path(config.record) if config.record else None
    opened: dict[str, Model] = {}
    for spec in specs:
        if spec not in opened:
            own = spec.partition(":")[0] not in ("agent", "command", "transcript")
            opened[spec] = open_model(
                spec,
                base_url=config.base_url if own else None,
                key_env=config.key_env if own else None,
                record=record,
            )
    return opened[specs[0]], opened[specs[1]]


def _desk(run: Run, at: Setting, planner: Model, writer: Model, evaluator: Evaluator) -> Desk:
    for role, model in (("planner", planner), ("writer", writer)):
        transcript = model.inner if isinstance(model, Recorder) else model
        if isinstance(transcript, TranscriptModel) and transcript.by == "order":
            transcript.skip(role, _replies(run, role))
    return Desk(ModelMind(planner, run, at), ModelMind(writer, run, at), evaluator)


def _replies(run: Run, role: str) -> int:
    """How many replies of a role the run has already."""
    events = log_of(run)
    mine = {e.request.id for e in events if isinstance(e, Asked) and ROLES.get(e.request.kind) == role}
    return sum(isinstance(e, Received) and e.request_id in mine for e in events)


def _fake(config: RunConfig) -> Desk:
    """The stand-ins. KSEARCH_FAKE_CALLS: file that notes each call; KSEARCH_FAKE_MS: how long each takes."""
    from ksearch.testing.fakes import fake_desk

    calls, pause_s = os.environ.get("KSEARCH_FAKE_CALLS"), float(os.environ.get("KSEARCH_FAKE_MS", "0")) / 1000

    def note(text: str) -> None:
        if calls:
            with Path(calls).open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
        time.sleep(pause_s)

    seed = config.model.partition(":")[2]
    return fake_desk(int(seed) if seed.isdigit() else 0, note)
