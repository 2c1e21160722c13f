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
    sent: str = ""  # the parameters as they went over the wire, as JSON
    notes: tuple[str, ...] = ()  # what is odd about how it was asked or answered


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
class Errand:
    """A piece of work on its way to whoever answers it."""

    job: Job
    prompt: bytes = b""
    stored: tuple[bytes, str] | None = None  # a reply that came before and was not told: nobody is asked again


Outcome = Answer | Measured | Lost | None  # None: the reply is stored already


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
        errand = self.errand(run, request)
        self.record(run, errand, self.fetch(errand), holder)

    def errand(self, run: Run, request: Request) -> Errand:
        """A request that is leased, with all that is needed to have it answered."""
        return Errand(Job(request, run.state, run.program), run.prompt(request.id) or b"", run.received(request.id))

    def fetch(self, errand: Errand) -> Outcome:
        """Call whoever is to answer. Nothing of the run changes, so this may be done in any thread."""
        request, program = errand.job.request, errand.job.program
        mind = self.mind(request.kind)
        try:
            if mind is None:
                against = [program(id) for id in request.against]
                return self.evaluator.evaluate(program(request.program_id or ""), against)
            return mind.answer(errand.job, errand.prompt) if errand.stored is None else None
        except Unavailable as error:
            return Lost(str(error), error.maybe_billed, error.transient, error.until)

    def record(self, run: Run, errand: Errand, outcome: Outcome, holder: Holder) -> None:
        """Tell the run what came. A model's reply is stored before it is read; one that was stored is read again."""
        request = errand.job.request
        match outcome:
            case Lost():
                run.tell(request.id, outcome, holder)
            case Measured(evaluation, record):
                run.tell(request.id, evaluation, holder, [record] if record else [])
            case Answer(raw, cost, model, finish, usage, sent, notes):
                run.receive(request.id, raw, cost, model, finish, usage, sent, notes)
                run.tell(request.id, self._read(errand.job, outcome.raw, outcome.finish), holder)
            case None if errand.stored:
                run.tell(request.id, self._read(errand.job, *errand.stored), holder)

    def _read(self, job: Job, raw: bytes, finish: str) -> Reply:
        mind = self.mind(job.request.kind)
        assert mind is not None, "what is measured is not read"
        return mind.read(job, raw, finish)
