"""Who answers a run that goes on in this process, by the settings it was begun with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ksearch.config import RunConfig
from ksearch.drivers import Desk, Evaluator
from ksearch.errors import BadInput
from ksearch.events import Asked, Received
from ksearch.models import AgentModel, Model, Price, Recorder, RetryPolicy, TranscriptModel, open_model
from ksearch.models.outage import MAX_WAIT_S, Breaker, Guarded, OutagePolicy, provider_of
from ksearch.protocol import Kind
from ksearch.run import Run
from ksearch.search import ALL_KINDS
from ksearch.service.beginning import Setting, log_of
from ksearch.service.fleets import measurers
from ksearch.service.minds import ROLES, ModelMind, Writers
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
    parallel: str = "1"  # at once, as the settings say
    devices: int = 1  # programs timed at once
    try_now: Callable[[], None] = lambda: None  # somebody says that a provider that was down may be up again


@contextmanager
def staffed(config: RunConfig, task: Task | None, tell: Callable[[str], None] = lambda _: None) -> Iterator[Staff]:
    """Open models and evaluator, and close them afterwards. `tell`: is told when a device is put aside.

    Raises:
        ModelSetupError: a model cannot be used.
        EvaluatorError: the task's baseline or reference does not work on this machine.
        BadInput: there is no task, so that nobody here can answer.
    """
    if config.model.partition(":")[0] == FAKE:
        yield Staff(lambda *_: _fake(config), ALL_KINDS, parallel=config.parallel)
        return
    breakers = dict[str, Breaker]()
    planner, writers = _models(config, breakers)
    models = {Kind.PLAN: (planner,), Kind.WRITE: tuple(writers.values())}
    answered = frozenset(k for k, all_ in models.items() if not any(isinstance(m, AgentModel) for m in all_))
    if task is None:
        raise BadInput(
            "a model needs a task to be asked about: --task NAME or FOLDER"
            if answered
            else "a run without a task is carried on by hand: `ksearch ask` hands out its work, `ksearch tell` takes it"
        )
    with measurers(config, task, tell) as found:
        kinds = answered | {Kind.EVALUATE}
        yield Staff(
            lambda run, at: _desk(run, at, planner, writers, found.evaluator),
            kinds,
            found.facts,
            config.parallel,
            found.devices,
            lambda: _try_now(breakers),
        )


def _models(config: RunConfig, breakers: dict[str, Breaker]) -> tuple[Model, Mapping[str, Model]]:
    """The planner, and the writers by the names that requests give them: one alone has none."""
    writers = config.all_writers
    if len(writers) > 1 and "agent" in writers:
        raise BadInput(
            "agent cannot be one of several writers: whoever asks by MCP or `ksearch ask` takes any request. Name "
            "models in `writers`, or let agents write alone (model = agent)"
        )
    record = Path(config.record) if config.record else None
    retries = RetryPolicy(config.model_tries, config.retry_seconds, config.retry_limit_seconds)
    opened: dict[str, Model] = {}
    for spec in dict.fromkeys((config.planner, *writers)):
        own = spec.partition(":")[0] not in ("agent", "command", "transcript")
        opened[spec] = open_model(
            spec,
            base_url=config.base_url if own else None,
            key_env=config.key_env if own else None,
            price=Price(*config.prices[spec]) if spec in config.prices else None,
            record=record,
            retries=retries,
        )
        _check_window(spec, opened[spec], config)
        if spec.partition(":")[0] not in ("agent", "transcript"):
            opened[spec] = Guarded(opened[spec], _breaker(provider_of(spec, config.base_url), config, breakers))
    named = {spec: opened[spec] for spec in writers} if len(writers) > 1 else {"": opened[writers[0]]}
    return opened[config.planner], named


def _check_window(spec: str, model: Model, config: RunConfig) -> None:
    """The longest prompt and the longest reply must fit a window that is known: else a run would stop half-way."""
    room, wanted = model.context_tokens, config.prompt_tokens + config.reply_tokens
    if room is not None and wanted > room:
        raise BadInput(
            f"{spec} has a context of {room:,} tokens, and a prompt of {config.prompt_tokens:,} (prompt_tokens) with a "
            f"reply of {config.reply_tokens:,} (reply_tokens) may come to {wanted:,}: lower --prompt-tokens or "
            "--reply-tokens"
        )


def _breaker(provider: str, config: RunConfig, breakers: dict[str, Breaker]) -> Breaker:
    """One for all models of a provider."""
    policy = OutagePolicy(
        min(config.outage_failures, config.max_retries + 1),  # before a plan would be given up
        config.outage_seconds,
        max(config.outage_seconds, MAX_WAIT_S),
        config.outage_hours * 3600,
        config.retry_limit_seconds,
    )
    return breakers.setdefault(provider, Breaker(provider, policy))


def _try_now(breakers: Mapping[str, Breaker]) -> None:
    for breaker in breakers.values():
        breaker.try_now()


def _desk(run: Run, at: Setting, planner: Model, writers: Mapping[str, Model], evaluator: Evaluator) -> Desk:
    _skip(run, planner, "planner", "")
    for name, model in writers.items():
        _skip(run, model, "writer", name)
    minds = {name: ModelMind(model, run, at) for name, model in writers.items()}
    return Desk(ModelMind(planner, run, at), minds.get("") or Writers(minds), evaluator)


def _skip(run: Run, model: Model, role: str, writer: str) -> None:
    """A transcript that answers by order goes on behind the replies that the run has already."""
    transcript = model.inner if isinstance(model, Recorder) else model
    if not isinstance(transcript, TranscriptModel) or transcript.by != "order":
        return
    events = log_of(run)
    asked = (e.request for e in events if isinstance(e, Asked) and ROLES.get(e.request.kind) == role)
    mine = {request.id for request in asked if request.writer == writer}
    transcript.skip(role, sum(isinstance(e, Received) and e.request_id in mine for e in events))


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
