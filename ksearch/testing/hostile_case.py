"""What a hostile case is: an answer made from a sound one, and what must come of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ksearch.testing.model_server import Scripted, chat, raw

Answering = Callable[[str], Scripted]


class Came(StrEnum):
    """What a run makes of it."""

    TAKEN = "taken as it is"
    REFUSED = "refused, asked again"
    LOST = "lost, asked again"
    WAITS = "the run waits, and goes on by itself"
    PAUSES = "the run pauses for a person"


class Counted(StrEnum):
    """What it costs."""

    REPORTED = "as reported"
    ESTIMATED = "tokens estimated, price unknown"
    RESERVED = "what was reserved"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Case:
    name: str
    does: str  # the server
    answer: Answering  # from the sound text
    came: Came
    counted: Counted = Counted.REPORTED
    says: str = ""  # words of the reason in the log
    to: str = "planner writer"
    times: int = 1  # in a row: what a call repeats by itself fails twice


def case(
    name: str, does: str, answer: Answering | Scripted, came: Came, counted: Counted, says: str, **more: Any
) -> Case:
    made = answer if not isinstance(answer, Scripted) else (lambda _: answer)
    return Case(name, does, made, came, counted, says, **more)


def failing(
    name: str, does: str, answer: Answering | Scripted, says: str, billed: bool = False, times: int = 1
) -> Case:
    counted = Counted.RESERVED if billed else Counted.NOTHING
    return case(name, does, answer, Came.LOST, counted, says, times=times)


def pausing(name: str, does: str, answer: Scripted, says: str) -> Case:
    return case(name, does, answer, Came.PAUSES, Counted.NOTHING, says)


def waiting(name: str, does: str, answer: Scripted, says: str) -> Case:
    return case(name, does, answer, Came.WAITS, Counted.NOTHING, says)


def refused(name: str, does: str, answer: Answering | Scripted, says: str, **more: Any) -> Case:
    return case(name, does, answer, Came.REFUSED, more.pop("counted", Counted.REPORTED), says, **more)


def taken(name: str, does: str, answer: Answering, **more: Any) -> Case:
    return case(name, does, answer, Came.TAKEN, more.pop("counted", Counted.REPORTED), "", **more)


def body(text: str, **changes: Any) -> dict[str, Any]:
    """A chat completion as an object, to be changed."""
    made: dict[str, Any] = json.loads(chat(text).body)
    return {**made, **changes}


def as_json(data: Any) -> Scripted:
    return raw(json.dumps(data).encode())


def http(head: str, sent: bytes) -> bytes:
    return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + sent


def typed(answer: Scripted, **headers: str) -> Scripted:
    return replace(answer, headers={**answer.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})
