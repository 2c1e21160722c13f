"""The side file: what a foreign format cannot say, in tables of `task.toml`, beside the file it is about.

`NAME.ksearch.toml` beside `NAME.json` or `NAME.py`; `task.ksearch.toml` inside a folder.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksearch.tasks.fields import Source, listed, suggest

TABLES = (
    "title", "description", "languages", "precision", "mean", "threads", "forbid", "axes", "inputs", "outputs",
    "constants", "constraints", "tolerance", "floor", "limits", "baseline", "strong", "workloads", "guides",
)  # fmt: skip
OWN = ("device", "ranges", "sizes", "max_workloads", "max_timed")


@dataclass(frozen=True)
class Side:
    """`path` is where it is, or would be; `tables` go into task.toml, the rest is for the adapter."""

    path: Path
    tables: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # programs and guides that it names
    data: bytes = b""

    @property
    def device(self) -> str | None:
        return self.own.get("device")


def side_path(source: Path) -> Path:
    return source / "task.ksearch.toml" if source.is_dir() else source.with_name(source.stem + ".ksearch.toml")


def read_side(source: Path) -> Side:
    """What lies beside `source`; an empty one where nothing does.

    Raises:
        TaskError: it cannot be read, or a key in it is not known here.
    """
    path = side_path(source)
    if not path.is_file():
        return Side(path)
    text = Source(path)
    text.parse()
    data = tomllib.loads(text.text)
    known = (*TABLES, *OWN)
    for key in data:
        if key not in known:
            text.fail((key,), "unknown key", f"Known here: {listed(known)}.{suggest(key, known)}")
    if data.get("device", "cpu") not in ("cpu", "cuda"):
        text.fail(("device",), f"{data['device']!r} is not known", "Use 'cpu' or 'cuda'.")
    for key in ("max_workloads", "max_timed"):
        if not isinstance(data.get(key, 1), int) or data.get(key, 1) < 1:
            text.fail((key,), f"must be a whole number of at least 1, got {data[key]!r}")
    for key in ("ranges", "sizes", *(k for k in TABLES if k in ("baseline", "strong", "axes", "inputs", "outputs"))):
        if not isinstance(data.get(key, {}), dict):
            text.fail((key,), f"must be a table ([{key}]), got {data[key]!r}")
    tables = {k: v for k, v in data.items() if k in TABLES}
    own = {k: v for k, v in data.items() if k in OWN}
    return Side(path, tables, own, _files(text, data), text.text.encode())


def _files(source: Source, data: dict[str, Any]) -> dict[str, str]:
    """The text of each program and guide named in it, by the name that it has there."""
    strong = data.get("strong", {})
    named = [(("baseline",), data.get("baseline", {}))] + [(("strong", k), v) for k, v in strong.items()]
    wanted = [((*path, "files"), name) for path, entry in named for name in entry.get("files", ())]
    wanted += [(("guides", k), name) for k, name in data.get("guides", {}).items()]
    found = {}
    for key, name in wanted:
        path = source.path.parent / name
        try:
            found[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            source.fail(key, f"{name!r} cannot be read: {error}", "Name a text file beside this one.")
    return found
