"""What the log knows and the state has let go of: the attempts of closed cycles, the planner's assessments.

Pure functions over events; the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ksearch import events as ev
from ksearch.protocol import Kind
from ksearch.state import Attempt


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person said about the run, a node or a program."""

    author: str
    text: str
    node_id: str | None = None
    program_id: str | None = None


def attempts_at(events: Iterable[ev.AnyEvent], node_id: str, *, last_cycle: bool = False) -> tuple[Attempt, ...]:
    """Every attempt at a node's action, in the order of their requests.

    A cycle that the run's end cut short leaves its action open: a later cycle starts anew, with its own rounds.

    Args:
        last_cycle: only those of the newest cycle, open or closed.
    """
    attempts: list[Attempt] = []
    width, start, over = 1, 0, False
    for event in events:
        match event:
            case ev.RunStarted(config=config):
                width = config.width
            case ev.Commanded(command=ev.SetParallel(width=wider)):
                width = wider
            case ev.Asked(request=request) if request.kind is Kind.WRITE and request.node_id == node_id:
                start, over = (len(attempts) if over else start), False
                attempts.append(Attempt(request.id, _round(attempts[start:], width), writer=request.writer))
            case ev.Submitted(node_id=at, program_id=program_id) if at == node_id:
                start, over = (len(attempts) if over else start), False
                attempts.append(Attempt("", _round(attempts[start:], width), program_id))
            case ev.Judged(node_id=at, attempt=index) if at == node_id:
                attempts[start + index] = replace(attempts[start + index], judged=event)
            case ev.CycleClosed(node_id=at) if at == node_id:
                over = True
            case ev.Written() | ev.WriteFailed() | ev.Evaluated():
                attempts = [_updated(a, event) for a in attempts]
    return tuple(attempts[start:] if last_cycle else attempts)


def _round(before: list[Attempt], width: int) -> int:
    """Of the next attempt of a cycle: the last one's, while that has room."""
    last = before[-1].round if before else 0
    return last if sum(a.round == last for a in before) < width else last + 1


def _updated(attempt: Attempt, event: ev.Written | ev.WriteFailed | ev.Evaluated) -> Attempt:
    """An attempt after an event that may be about it."""
    if attempt.verdict is not None:
        return attempt
    match event:
        case ev.Evaluated(evaluation=done) if done.program_id == attempt.program_id:
            return replace(attempt, verdict=done.verdict, reason=done.reason)
        case ev.Written(request_id=id, program_id=program_id) if id == attempt.request_id:
            return replace(attempt, program_id=program_id)
        case ev.WriteFailed(request_id=id, verdict=verdict, reason=reason, program_id=program_id):
            if id == attempt.request_id:
                return replace(attempt, program_id=program_id, verdict=verdict, reason=reason)
    return attempt


def last_assessment(events: Iterable[ev.AnyEvent]) -> str:
    """What the planner made of things when it last answered."""
    found = ""
    for event in events:
        if isinstance(event, ev.Planned) and event.assessment:
            found = event.assessment
    return found


def remarks(events: Iterable[ev.AnyEvent]) -> tuple[Remark, ...]:
    """People's notes and reviews, oldest first."""
    found = []
    for event in events:
        match event:
            case ev.Commanded(command=ev.Note(text, node_id, program_id), author=author):
                found.append(Remark(author, text, node_id, program_id))
            case ev.Commanded(command=ev.Review(program_id, accept, text), author=author):
                word = "accepted" if accept else "not accepted"
                found.append(Remark(author, f"program {program_id[:12]} {word}: {text}", None, program_id))
    return tuple(found)
