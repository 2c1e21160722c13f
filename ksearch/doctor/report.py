"""What the doctor says: one line per thing looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but slower, less precise or less protected than it could
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """`detail` names what was looked at, with its path; `cure` says what to do where it is not ok."""

    name: str
    health: Health
    detail: str
    cure: str = ""
    needed: bool = True  # evaluation does not work without it


def ok(name: str, detail: str) -> Line:
    return Line(name, Health.OK, detail)


def warn(name: str, detail: str, cure: str) -> Line:
    return Line(name, Health.WARN, detail, cure, needed=False)


def fail(name: str, detail: str, cure: str, *, needed: bool = True) -> Line:
    return Line(name, Health.FAIL, detail, cure, needed)


def can_evaluate(lines: Sequence[Line]) -> bool:
    """Nothing failed that evaluation needs."""
    return not any(line.health is Health.FAIL and line.needed for line in lines)
