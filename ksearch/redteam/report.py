"""The table of results for people and programs, and the table of cheats in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ksearch.redteam.cheat import Cheat
from ksearch.redteam.gpu import measured
from ksearch.redteam.gpu.table import KINDS as GPU_KINDS
from ksearch.redteam.suite import Row, Seen
from ksearch.redteam.table import KINDS

HEAD = ("", "cheat", "got", "at", "twin", "with the defence off")


def stopper(cheat: Cheat) -> str:
    """What stops it, in words."""
    return " + ".join(map(str, cheat.defences)) or cheat.because


def must(cheat: Cheat) -> str:
    """What has to become of it, in words."""
    if cheat.saves:
        return "gains nothing"
    verdicts = " or ".join(str(v) for v in cheat.verdicts)
    return "gets nothing" if verdicts == "passed" else verdicts


def state(row: Row) -> str:
    if row.left_out:
        return "-"
    return "ok" if row.ok else "WRONG"


def summary(rows: Sequence[Row]) -> list[str]:
    """How many rows are right, and how many were left out, and why: those count for nothing."""
    tried = [row for row in rows if not row.left_out]
    lines = [f"{sum(row.ok for row in tried)} of {len(tried)} rows are as they have to be"]
    for reason in sorted({row.skipped for row in rows if row.left_out}):
        count = sum(row.left_out and row.skipped == reason for row in rows)
        lines.append(f"{count} rows were left out and show nothing: each {reason}")
    return lines


def line(row: Row) -> tuple[str, ...]:
    """Cells for `HEAD`."""
    proof = _cell(row.proof) or f"({row.skipped})" * bool(row.skipped)
    caught = row.caught
    return (
        state(row), row.cheat.name, str(caught) if caught else f"({row.skipped})",
        caught.stage if caught else "", _cell(row.twin), proof,
    )  # fmt: skip


def _cell(seen: Seen | None) -> str:
    if seen is None:
        return ""
    return str(seen) if seen.ok else f"WRONG: {seen}"


def faults(rows: Sequence[Row]) -> list[str]:
    """One line for each thing that is not as it has to be."""
    found = []
    for row in rows:
        wanted = {
            "cheat": (row.caught, f"must be {must(row.cheat)} at {' or '.join(row.cheat.stages)}"),
            "twin": (row.twin, "must pass"),
            "proof": (row.proof, f"must succeed without {stopper(row.cheat)}"),
        }
        for part, (seen, rule) in wanted.items():
            if seen is not None and not seen.ok:
                found.append(f"{row.cheat.name}, {part}: {rule}; got {seen} at {seen.stage}: {seen.reason}")
    return found


def as_dict(row: Row) -> dict[str, Any]:
    """JSON-able."""
    parts = {"caught": row.caught, "twin": row.twin, "proof": row.proof}
    return {
        "name": row.cheat.name, "what": row.cheat.what, "stopped_by": stopper(row.cheat), "must": must(row.cheat),
        "ok": None if row.left_out else row.ok, "skipped": row.skipped,
        **{
            name: seen and {
                "ok": seen.ok, "verdict": seen.verdict, "stage": seen.stage, "speedup": seen.speedup,
                "loot": seen.loot, "reason": seen.reason, "seconds": round(seen.seconds, 3), "tries": seen.tries,
            }
            for name, seen in parts.items()
        },
    }  # fmt: skip


def markdown() -> str:
    """The tables of docs/redteam.md: one per kind, and what was seen on a GPU."""
    parts = []
    for kind, cheats in (KINDS | GPU_KINDS).items():
        head = [f"### {kind}", "", "| cheat | what it does | outcome | stopped by |", "|---|---|---|---|"]
        rows = [f"| `{c.name}` | {c.what} | {must(c)} | {_stopper(c)} |" for c in cheats]
        parts.append("\n".join([*head, *rows, ""]))
    return "\n".join([*parts, measured.markdown()])


def _stopper(cheat: Cheat) -> str:
    return " and ".join(f"`{d}`" for d in cheat.defences) or f"*{cheat.because}*"
