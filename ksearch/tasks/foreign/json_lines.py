"""A JSON file whose mistakes can be named by line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from ksearch.errors import TaskError


class Json:
    """One JSON file, and where in it a key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.data = json.loads(self.text)
        except OSError as error:
            raise TaskError(f"{path}: cannot be read: {error.strerror}") from None
        except json.JSONDecodeError as error:
            raise TaskError(f"{path}:{error.lineno}: not valid JSON: {error.msg}. Correct that line.") from None
        except UnicodeDecodeError as error:
            raise TaskError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
        if not isinstance(self.data, dict):
            raise TaskError(f"{path}: not a definition: an object is expected, got {type(self.data).__name__}.")

    def fail(self, path: tuple[str, ...], problem: str, fix: str = "") -> NoReturn:
        line, at = None, 0
        for key in path:
            found = re.compile(rf'"{re.escape(key)}"\s*:').search(self.text, at)
            if found is None:
                break
            at, line = found.end(), self.text.count("\n", 0, found.start()) + 1
        where = f"{self.path}:{line}" if line else str(self.path)
        raise TaskError(f"{where}: {'.'.join(path)}: {problem}.{' ' + fix if fix else ''}")

    def take(self, *path: str, kind: type, what: str) -> Any:
        value: Any = self.data
        for key in path:
            if not isinstance(value, dict) or key not in value:
                self.fail(path, "missing", f"Add it: {what}.")
            value = value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            self.fail(path, f"must be {what}, got {value!r}")
        return value
