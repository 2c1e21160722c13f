"""What lint found: one row per check, each with a cure where it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    NOTE = "note"  # worth a look; the task is usable
    FAIL = "fail"
    SKIPPED = "skipped"  # could not be looked at; the detail says why


@dataclass(frozen=True, slots=True)
class Row:
    check: str
    status: Status
    detail: str = ""
    cure: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Row:
        return cls(data["check"], Status(data["status"]), data.get("detail", ""), data.get("cure", ""))


@dataclass(frozen=True, slots=True)
class LintReport:
    task: str
    rows: tuple[Row, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Nothing failed. Skipped rows and notes do not count against a task."""
        return all(row.status is not Status.FAIL for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.status is Status.FAIL)

    def __str__(self) -> str:
        lines = [f"{row.status:<7} {row.check}: {row.detail}".rstrip(": ") for row in self.rows]
        lines = [
            f"{line}\n        cure: {row.cure}" if row.cure else line
            for line, row in zip(lines, self.rows, strict=True)
        ]
        return "\n".join(lines)
