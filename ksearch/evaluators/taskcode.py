"""The task author's own code, `reference.py`: loading it, calling it, and telling its faults from ours."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


class TaskFault(Exception):
    """The task's own code is at fault: its reference raised, or gave something else than declared."""


def load(path: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "reference", "__file__": str(path)}
    sys.path.insert(0, str(path.parent))
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), scope)  # noqa: S102
    except ModuleNotFoundError as error:
        cure = f"`pip install {error.name}` for {sys.executable}" if error.name else "Install it"
        raise TaskFault(f"{path}: {error}. {cure}.") from error
    except Exception as error:  # boundary: the task author's code
        raise TaskFault(f"{path}: {type(error).__name__}: {error}") from error
    return scope


def function(scope: dict[str, Any], name: str, folder: Path) -> Callable[..., Any]:
    found = scope.get(name)
    if not callable(found):
        raise TaskFault(f"{folder / 'reference.py'}: no function {name!r}")
    return found  # type: ignore[no-any-return]


def is_memory(error: BaseException) -> bool:
    """torch has a class of its own, which is no MemoryError."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def call(name: str, code: Callable[..., Any], *arguments: Any) -> Any:
    """What `code` returns.

    Raises:
        TaskFault: it raised; the message names the line.
        MemoryError: it found no memory.
    """
    try:
        return code(*arguments)
    except Exception as error:  # boundary: the task author's code
        if is_memory(error):
            raise MemoryError(str(error)) from error
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{name}() raised {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        raise TaskFault(text) from error
