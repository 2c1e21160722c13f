"""`ksearch init`: a new task folder that is complete, commented and passes `ksearch lint` as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from ksearch.errors import TaskError
from ksearch.tasks import foreign
from ksearch.tasks.fields import listed, suggest
from ksearch.tasks.folder import Task, load_task

FILES = Path(__file__).parent / "template_files"
BASELINES = {"cpp": "baseline.cpp", "python": "baseline.py"}


def init_task(folder: str | Path, name: str = "", language: str = "cpp") -> Task:
    """Write a new task into `folder`, made if need be; `name` defaults to the folder's own.

    Raises:
        TaskError: a file is already there (nothing is overwritten), an unusable name, an unknown language,
            or a folder that cannot be written.
    """
    folder = Path(folder).expanduser()
    name = name or re.sub(r"[^a-z0-9_-]+", "_", folder.resolve().name.lower()).strip("_-")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise TaskError(f"{name!r} cannot name a task. Use small letters, digits, _ and -, such as 'row_softmax'.")
    if language not in BASELINES:
        raise TaskError(
            f"no template for language {language!r}. Use {listed(BASELINES)}.{suggest(language, BASELINES)}"
        )
    baseline = BASELINES[language]
    text = (FILES / "task.toml").read_text(encoding="utf-8")
    for mark, value in (("@NAME@", name), ("@LANGUAGE@", language), ("@FILE@", baseline)):
        text = text.replace(mark, value)
    contents = {"task.toml": text}
    contents |= {f: (FILES / f).read_text(encoding="utf-8") for f in ("reference.py", baseline)}
    _write(folder, contents)
    return load_task(folder)


def init_from(source: str, folder: str | Path, device: str = "") -> Task:
    """Write the task that a file or folder in another format becomes into `folder`, to be changed from there.

    Raises:
        TaskError: it cannot be read, or a file is already there.
    """
    folder = Path(folder).expanduser()
    if not foreign.is_foreign(source):
        raise TaskError(f"{source}: not one of the formats that are read: {listed(foreign.FORMATS)}.")
    _write(folder, foreign.convert(source, device))
    return load_task(folder)


def _write(folder: Path, contents: dict[str, str]) -> None:
    if there := [name for name in contents if (folder / name).exists()]:
        raise TaskError(
            f"{folder} already holds {listed(there)}; nothing was written. Choose another folder or remove them."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise TaskError(
            f"{folder}: cannot be written: {error.strerror}. Choose a folder that you may write to."
        ) from None
