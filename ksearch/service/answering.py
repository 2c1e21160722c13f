"""Work that leaves the house: handed to a person or agent at a shell, and the answer that comes back some time."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ksearch import events as ev
from ksearch.codec import decode_evaluation
from ksearch.definition import TaskSpec
from ksearch.errors import CodecError, InvalidReply
from ksearch.protocol import Cost, Done, Holder, Kind, Lost, Request, Wait
from ksearch.run import Run
from ksearch.service.beginning import Setting
from ksearch.service.prompting import prompt_of
from ksearch.service.reading import read_reply
from ksearch.state import was_asked
from ksearch.types import Evaluation


class Outcome(StrEnum):
    TAKEN = "taken"
    REFUSED = "refused"  # recorded, but it held no plan or program that could be used
    DUPLICATE = "duplicate"  # answered before: nothing was recorded
    IGNORED = "ignored"  # the work had been withdrawn; the raw reply is kept


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an answer."""

    outcome: Outcome
    events: Sequence[ev.Event] = ()


def outside_holder(name: str) -> Holder:
    """Somebody whose process is not ours to watch (a shell command ends at once): only the deadline tells."""
    return Holder(name, socket.gethostname())


def take_unanswered(
    run: Run,
    setting: Setting,
    holder: Holder,
    kinds: frozenset[Kind],
    lease_s: float,
    note: Callable[[str], None],
) -> Request | Wait | Done:
    """The next request that really needs an answer: a reply that is stored already is read on the way."""
    while True:
        got = run.take(holder, kinds, lease_s, lambda state, request: prompt_of(run, state, request, setting))
        if not isinstance(got, Request) or run.received(got.id) is None:
            return got
        note(f"note: the reply to {got.id} was stored and not read: reading it now")
        tell_stored(run, got.id, setting.spec, setting.config.language)


def kind_of(run: Run, request_id: str) -> Kind | None:
    """The kind of an open request; None for one that is answered or withdrawn.

    Raises:
        InvalidReply: no such request was made.
    """
    pending = run.refresh().pending.get(request_id)
    if pending:
        return pending.request.kind
    if not was_asked(run.state, request_id):
        raise InvalidReply(
            f"no request {request_id!r} was made in run {run.id}: open are {_open(run)}; `ksearch ask` hands out more"
        )
    return None


def _open(run: Run) -> str:
    return ", ".join(f"{id} ({p.request.kind})" for id, p in run.state.pending.items()) or "none"


def tell_raw(
    run: Run,
    request_id: str,
    raw: bytes,
    *,
    task: TaskSpec | None = None,
    language: str | None = None,
    cost: Cost | None = None,
    model: str = "",
    finish: str = "",
) -> Told:
    """Take an answer as it came: stored first, then read, then told. May be repeated without harm.

    Raises:
        InvalidReply: no such request, or plainly an answer to one of another kind. Nothing is recorded.
        CodecError: an evaluation that is not one. Nothing is recorded.
    """
    kind = kind_of(run, request_id)
    if kind is Kind.EVALUATE:
        return _told(run.tell(request_id, read_evaluation(raw, request_id)))
    if kind is None and request_id not in run.state.withdrawn:
        return Told(Outcome.DUPLICATE)
    if kind is not None and _looks_like_an_evaluation(raw):
        raise InvalidReply(f"{request_id} asks for a {kind}: this is an evaluation. Nothing was recorded")
    if run.received(request_id) is None:
        run.receive(request_id, raw, cost, model, finish)
    return tell_stored(run, request_id, task, language)


def tell_stored(run: Run, request_id: str, task: TaskSpec | None = None, language: str | None = None) -> Told:
    """Read the reply that is stored for a request and tell it."""
    pending, stored = run.state.pending.get(request_id), run.received(request_id)
    if pending is None or stored is None:  # withdrawn: the core notes it, whatever it holds
        return _told(run.tell(request_id, Lost("withdrawn")))
    reply = read_reply(run.state, pending.request, *stored, task, language)
    return _told(run.tell(request_id, reply))


def tell_lost(run: Run, request_id: str, reason: str) -> Told:
    """Give up on a request: it will be asked again."""
    if kind_of(run, request_id) is None:
        return Told(Outcome.DUPLICATE)
    return _told(run.tell(request_id, Lost(reason)))


def _told(events: Sequence[ev.Event]) -> Told:
    if not events:
        return Told(Outcome.DUPLICATE)
    match events[0]:
        case ev.PlanRefused() | ev.WriteFailed():
            return Told(Outcome.REFUSED, events)
        case ev.Ignored():
            return Told(Outcome.IGNORED, events)
    return Told(Outcome.TAKEN, events)


def read_evaluation(raw: bytes, request_id: str) -> Evaluation:
    try:
        body: Any = json.loads(raw)
    except ValueError as error:
        raise CodecError(
            f"{request_id} asks for an evaluation as JSON, and this is not JSON ({error}). Nothing was recorded"
        ) from error
    if not isinstance(body, dict):
        raise CodecError(f"{request_id} asks for an evaluation: a JSON object, not {body!r:.60}. Nothing was recorded")
    return decode_evaluation(body)


def _looks_like_an_evaluation(raw: bytes) -> bool:
    try:
        body = json.loads(raw)
    except ValueError:
        return False
    return isinstance(body, dict) and {"program_id", "verdict"} <= set(body)


def describe(run: Run, request: Request) -> str:
    """A request in plain words, for a run that has no task to make a prompt from."""
    node = run.state.tree[request.node_id]
    if request.kind is Kind.PLAN:
        lines = ["Plan the search: answer with edits of the tree.", f"Asked because: {request.why}, at {node.id}."]
    elif request.kind is Kind.WRITE:
        base = f"program {request.program_id}" if request.program_id else "the baseline"
        lines = [f"Write a program that carries out {node.id}: {node.action.title}", f"Start from {base}."]
        lines += [node.action.rationale] if node.action.rationale else []
    else:
        lines = [f"Measure program {request.program_id}, an attempt at {node.id}: {node.action.title}"]
        lines += [f"Time it beside {id}." for id in request.against]
        lines += ["Answer with an evaluation as JSON."]
    pending = run.state.pending.get(request.id)
    lines += [f"An earlier answer was refused: {reason}" for reason in (pending.refusals if pending else ())]
    return "\n".join(lines) + "\n"
