"""The tasks of a campaign: a folder of task folders, or a text file that names one on each line. Nothing is loaded."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ksearch.errors import BadInput, TaskError
from ksearch.tasks import find_task, tasks_of
from ksearch.tasks.folder import BUNDLED
from ksearch.tasks.foreign import is_foreign

SHOWN = 5  # mistakes told at once


@dataclass(frozen=True, slots=True)
class Listed:
    """One task of a list. `name` is its own within the campaign; `where`: as `load_task` takes it."""

    name: str
    where: str


def read_tasks(place: str) -> tuple[Listed, ...]:
    """All tasks of a folder (one level deep, by name) or of a list (in its order).

    Raises:
        BadInput: there is no such place, nothing in it, a folder that is missing or no task, or one that is there
            twice; all of them in one message. Nothing has been begun.
    """
    path = Path(place).expanduser()
    if path.is_dir():
        return _in_folder(place, path)
    if path.is_file():
        return _in_list(path)
    raise BadInput(f"{place}: no such folder or file. Name a folder of task folders, or a text file with one per line")


def _in_folder(place: str, path: Path) -> tuple[Listed, ...]:
    if (path / "task.toml").is_file():
        raise BadInput(f"{place} is one task, not a folder of tasks: `ksearch run --task {place}` searches it")
    inside = tasks_of(place)  # a whole data set stands for its definitions
    found = sorted(p for p in path.iterdir() if _is_task(p)) if inside == [place] else [Path(name) for name in inside]
    if not found:
        raise BadInput(
            f"{place} holds no task: each is a folder of its own with a task.toml in it (`ksearch init`), or in one of "
            "the field's formats"
        )
    return _named((task, str(task.resolve())) for task in found)


def _is_task(path: Path) -> bool:
    return (path / "task.toml").is_file() or (path.name[0] not in "._" and is_foreign(path))


def _in_list(path: Path) -> tuple[Listed, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as a list of tasks: {error}. Write one folder or name a line") from error
    wanted = [(n, text) for n, line in enumerate(lines, 1) if (text := line.partition("#")[0].strip())]
    if not wanted:
        raise BadInput(f"{path} names no task: write one task folder, or name of a bundled task, on each line")
    found: dict[Path, int] = {}
    wrong: list[str] = []
    for number, text in wanted:
        try:
            task = _task(path.parent, text)
        except TaskError as error:
            wrong.append(f"line {number}: {error}")
            continue
        if first := found.get(task):
            wrong.append(f"line {number}: {text} is on line {first} already")
        else:
            found[task] = number
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        text = "\n  ".join(wrong[:SHOWN])
        raise BadInput(f"{path}: nothing was begun, correct the list first:\n  {text}{more}")
    return _named((task, task.name if task.parent == BUNDLED else str(task)) for task in found)


def _task(base: Path, text: str) -> Path:
    """A line's folder or file: beside the list, else a bundled task's."""
    beside = base / Path(text).expanduser()
    if not beside.exists():
        return find_task(text)
    if is_foreign(beside):
        return beside.resolve()
    folder = find_task(beside).resolve()
    if not (folder / "task.toml").is_file():
        raise TaskError(f"{text} is no task folder: it has no task.toml. `ksearch init {text}` writes one")
    return folder


def _stem(path: Path) -> str:
    return path.stem if path.is_file() else path.name


def _named(found: Iterable[tuple[Path, str]]) -> tuple[Listed, ...]:
    """Their names, with a bit of hash where two are alike: stable when the list is put in another order."""
    pairs = [(re.sub(r"[^A-Za-z0-9_-]+", "-", _stem(path)).strip("-") or "task", where) for path, where in found]
    alike = Counter(name for name, _ in pairs)
    return tuple(
        Listed(f"{name}-{hashlib.sha256(where.encode()).hexdigest()[:6]}" if alike[name] > 1 else name, where)
        for name, where in pairs
    )
