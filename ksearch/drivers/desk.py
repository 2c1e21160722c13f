"""Who answers the requests of a run: a planner, a writer and an evaluator, each by a protocol of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ksearch.errors import Unavailable
from ksearch.protocol import Cost, Holder, Kind, Lost, Plan, Refusal, Reply, Request, Usage
from ksearch.run import Run
from ksearch.state import State
from ksearch.types import Evaluation, Program


@dataclass(frozen=True, slots=True)
class Job:
    """One request with all that may be known for it."""

    request: Request
    state: State
    program: Callable[[str], Program]  # by id, from the store


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model sent back, as it came: stored before anybody reads it."""

    raw: bytes
    cost: Cost = field(default_factory=Cost)
    model: str = ""
    finish: str = ""  # why it stopped, in the provider's words
    usage: Usage | None = None


class Mind(Protocol):
    """A planner or a writer. `answer` may cost money; `prompt` and `read` are pure and may be called again."""

    def prompt(self, job: Job) -> bytes:
        """The whole prompt, which is recorded before it is sent."""

    def answer(self, job: Job, prompt: bytes) -> Answer:
        """Ask the model.

        Raises:
            Unavailable: no answer could be had. The work is asked again, and after some tries the run pauses.
        """

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        """Make a typed reply of a raw one, or say why it holds none. Never raises for what a model wrote."""


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation and its whole record (samples, seeds, versions), whose hash is `evaluation.record`."""

    evaluation: Evaluation
    record: bytes | None = None


class Evaluator(Protocol):
    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        """Build, check and time a program beside the baseline and `against`, interleaved. A bad program is a
        verdict; `Lost` only when the machinery failed and the same program should be tried again."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The three who answer. `serve` does one request from lease to told reply."""

    planner: Mind
    writer: Mind
    evaluator: Evaluator

    def mind(self, kind: Kind) -> Mind | None:
        return {Kind.PLAN: self.planner, Kind.WRITE: self.writer}.get(kind)

    def prompt(self, run: Run, state: State, request: Request) -> bytes | None:
        """The prompt of a request, or None where no model is to be called: the reply is stored already."""
        pending = state.pending.get(request.id)
        mind = self.mind(request.kind)
        if mind is None or (pending and pending.received):
            return None
        return mind.prompt(Job(request, state, run.program))

    def serve(self, run: Run, request: Request, holder: Holder) -> None:
        mind = self.mind(request.kind)
        try:
            if mind is None:
                self._measure(run, request, holder)
            else:
                run.tell(request.id, _ask(run, mind, request), holder)
        except Unavailable as error:
            run.tell(request.id, Lost(str(error), error.maybe_billed, error.transient), holder)

    def _measure(self, run: Run, request: Request, holder: Holder) -> None:
        against = [run.program(id) for id in request.against]
        result = self.evaluator.evaluate(run.program(request.program_id or ""), against)
        if isinstance(result, Lost):
            run.tell(request.id, result, holder)
        else:
            run.tell(request.id, result.evaluation, holder, [result.record] if result.record else [])


def _ask(run: Run, mind: Mind, request: Request) -> Reply:
    """A reply that is stored is read again; only where there is none is the model called."""
    job = Job(request, run.state, run.program)
    stored = run.received(request.id)
    if stored is None:
        answer = mind.answer(job, run.prompt(request.id) or b"")
        run.receive(request.id, answer.raw, answer.cost, answer.model, answer.finish, answer.usage)
        return mind.read(job, answer.raw, answer.finish)
    return mind.read(job, *stored)
