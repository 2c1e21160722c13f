"""What was seen of the GPU rows, where and when: kept beside the table, since few machines can run it again."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksearch.evaluators.gpu import nvml
from ksearch.redteam.cheat import Cheat
from ksearch.redteam.gpu.table import CHEATS

if TYPE_CHECKING:
    from ksearch.redteam.suite import Row, Seen

FILE = Path(__file__).parent / "measured.json"


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def keep(rows: Sequence[Row]) -> None:
    """Write what these rows say in place of what was known of them; a part that went wrong counts as not seen."""
    gpu = nvml.gpus()[0]
    known = load()["rows"]
    for row in (r for r in rows if r.cheat.device == "cuda" and not r.left_out):
        parts = {"cheat": _cell(row.caught, stage=True), "twin": _cell(row.twin)}
        known[row.cheat.name] = parts | ({"proof": _cell(row.proof)} if row.cheat.defences else {})
    data = {
        "machine": f"one {gpu['name']}, driver {gpu['driver']}", "date": time.strftime("%Y-%m-%d"),
        "rows": {cheat.name: known[cheat.name] for cheat in CHEATS if cheat.name in known},
    }  # fmt: skip
    FILE.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def _cell(seen: Seen | None, *, stage: bool = False) -> str | None:
    if seen is None or not seen.ok:
        return None
    return f"{seen} at {seen.stage}" if stage else str(seen)


def parts(cheat: Cheat) -> tuple[str, ...]:
    """What there is to be seen of it."""
    return ("cheat", "twin", "proof") if cheat.defences else ("cheat", "twin")


def unseen(rows: Mapping[str, Mapping[str, str | None]]) -> list[str]:
    """What has not been seen as it has to be: "gpu-zeros, twin"."""
    return [f"{c.name}, {part}" for c in CHEATS for part in parts(c) if not rows.get(c.name, {}).get(part)]


def markdown() -> str:
    """A section of docs/redteam.md."""
    data = load()
    rows = data["rows"]
    seen = sum(bool(rows.get(c.name, {}).get(p)) for c in CHEATS for p in parts(c))
    missing = "; ".join(unseen(rows)) or "nothing"
    head = [
        "### On a GPU: what was seen", "",
        f"On {data['machine']}, {data['date']}: {seen} of {sum(len(parts(c)) for c in CHEATS)} measurements, all as "
        f"they have to be. Not seen: {missing}.{' ' * bool(data.get('note'))}{data.get('note', '')}", "",
        "| cheat | got | twin | with the defence off |", "|---|---|---|---|",
    ]  # fmt: skip
    return "\n".join([*head, *(_line(cheat, rows.get(cheat.name, {})) for cheat in CHEATS), ""])


def _line(cheat: Cheat, row: Mapping[str, str | None]) -> str:
    cells = [row.get(part) or "not seen" for part in parts(cheat)] + [""] * (3 - len(parts(cheat)))
    return f"| `{cheat.name}` | " + " | ".join(cells) + " |"
