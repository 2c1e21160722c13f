"""From what a person names on a command line to a program: a file, a folder, or the task's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ksearch.codec import decode_program
from ksearch.errors import BadInput, CodecError
from ksearch.replies import canonical_source
from ksearch.tasks import Task
from ksearch.types import Program

LANGUAGES: Mapping[str, str] = {
    ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp", ".c": "c", ".cu": "cuda", ".py": "python",
}  # fmt: skip
BASELINE = "baseline"
PROGRAM_FILE = "program.json"  # in a folder that `ksearch best` wrote


def named_program(name: str, task: Task) -> Program:
    """The program that `name` means for this task.

    Args:
        name: a source file (language by its suffix, entry point by the task), a program as JSON, a folder with a
            `program.json`, or `baseline` or one of the task's strong baselines by name.

    Raises:
        BadInput: nothing of that name, or nothing that could be a program.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return _from_folder(path)
    if path.is_file():
        return _from_json(path) if path.suffix == ".json" else _from_source(path, task)
    if name == BASELINE:
        return task.baseline
    if name in task.strong:
        return task.strong[name]
    own = ", ".join([BASELINE, *task.strong])
    raise BadInput(f"{name}: no such file or folder, and task {task.name} has no program of that name (it has: {own})")


def _from_folder(folder: Path) -> Program:
    file = folder / PROGRAM_FILE
    if not file.is_file():
        raise BadInput(f"{folder} holds no {PROGRAM_FILE}: name a source file, or a folder written by `ksearch best`")
    return _from_json(file)


def _from_json(path: Path) -> Program:
    text = _text(path)
    try:
        body = json.loads(text)
        if isinstance(body, dict):
            body.pop("id", None)  # as `ksearch show --program ID --json` prints it
        return decode_program(json.dumps(body).encode())
    except (ValueError, RecursionError, CodecError) as error:
        raise BadInput(
            f"{path} is no program as JSON: {error}. It has the fields sources, entry_point and language"
        ) from error


def _from_source(path: Path, task: Task) -> Program:
    language = LANGUAGES.get(path.suffix)
    if language is None:
        known = ", ".join(LANGUAGES)
        raise BadInput(f"{path}: its suffix does not tell the language (known: {known}; .json for a whole program)")
    if language == "python" and "triton" in task.spec.languages and "python" not in task.spec.languages:
        language = "triton"
    try:
        return Program({path.name: canonical_source(_text(path))}, f"{path.name}::{task.spec.entry_point}", language)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
