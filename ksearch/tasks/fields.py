"""Reads typed fields out of parsed TOML. Every mistake is one `TaskError` with file, line, value and fix."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ksearch.errors import TaskError
from ksearch.expressions import Number
from ksearch.tasks.toml_lines import KeyPath, index_lines, line_of

T = TypeVar("T")


def suggest(word: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' where a known word is close, else ''."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def listed(words: Iterable[object]) -> str:
    return ", ".join(map(str, words)) or "none"


class Source:
    """One TOML file: its text, and where in it each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = _read(path)
        self._lines = index_lines(self.text)

    def parse(self) -> Section:
        try:
            data = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise TaskError(f"{self.path}: not valid TOML: {error}. Correct that line.") from None
        return Section(self, (), data)

    def fail(self, path: KeyPath, problem: str, fix: str = "") -> NoReturn:
        line = line_of(self._lines, path)
        where = f"{self.path}:{line}" if line else str(self.path)
        raise TaskError(f"{where}: {_dotted(path)}: {problem}.{' ' + fix if fix else ''}")


class Section:
    """A table. `take` reads a key; `finish` refuses what nobody took."""

    def __init__(self, source: Source, path: KeyPath, data: Mapping[str, Any]) -> None:
        self._source, self.path, self.data = source, path, data
        self._known: list[str] = []

    def fail(self, key: str, problem: str, fix: str = "") -> NoReturn:
        self._source.fail((*self.path, key) if key else self.path, problem, fix)

    def has(self, key: str) -> bool:
        return key in self.data

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, default, "a text", lambda v: isinstance(v, str))
        if not value.strip() and default is None:
            self.fail(key, "is empty", f"Fill in {key}.")
        return str(value)

    def choice(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        value = self.text(key, default)
        known = tuple(known)
        if value not in known:
            self.fail(key, f"{value!r} is not known", f"Use one of {listed(known)}.{suggest(value, known)}")
        return value

    def integer(self, key: str, default: int | None = None, low: int = 1) -> int:
        value = self._take(key, default, "a whole number", _is_integer)
        if value < low:
            self.fail(key, f"{value} is too small", f"Use {low} or more.")
        return int(value)

    def number(self, key: str, default: float | None = None, low: float = -math.inf) -> Number:
        value: Number = self._take(key, default, "a number", _is_number)
        if not math.isfinite(value) or value < low:
            self.fail(key, f"{value} is out of range", f"Use a finite number of at least {low:g}.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._take(key, default, "true or false", lambda v: isinstance(v, bool)))

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._take(key, default, "a list of texts", lambda v: _is_list(v, lambda e: isinstance(e, str)))
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...]:
        value = self._take(key, None, "a list of whole numbers", lambda v: _is_list(v, _is_integer))
        return tuple(value)

    def sizes(self, key: str) -> tuple[str | int, ...]:
        value = self._take(
            key,
            None,
            "a list of axis names, whole numbers and formulas",
            lambda v: _is_list(v, lambda e: isinstance(e, str) or _is_integer(e)),
        )
        return tuple(value)

    def table(self, key: str, optional: bool = False) -> Section:
        default: dict[str, Any] | None = {} if optional else None
        data = self._take(key, default, f"a table ([{_dotted((*self.path, key))}])", lambda v: isinstance(v, dict))
        return Section(self._source, (*self.path, key), data)

    def tables(self, key: str) -> list[Section]:
        data = self._take(
            key, None, f"a list of tables ([[{key}]])", lambda v: _is_list(v, lambda e: isinstance(e, dict))
        )
        return [Section(self._source, (*self.path, key, n), entry) for n, entry in enumerate(data)]

    def children(self) -> list[tuple[str, Section]]:
        """Every entry as a table of its own; the names are the user's, so none of them is unknown."""
        return [(name, self.table(name)) for name in self.data]

    def finish(self) -> None:
        for key in self.data:
            if key not in self._known:
                known = listed(sorted(self._known))
                self.fail(key, "unknown key", f"Known here: {known}.{suggest(key, self._known)}")

    def _take(self, key: str, default: Any, what: str, good: Callable[[Any], bool]) -> Any:
        self._known.append(key)
        if key not in self.data:
            if default is None:
                near = suggest(key, set(self.data) - set(self._known))
                near = near.replace("Did you mean", "Is it the one written as") if near else ""
                self.fail(key, "missing", f"Add it: {what}.{near}")
            return default
        value = self.data[key]
        if not good(value):
            self.fail(key, f"must be {what}, got {value!r}")
        return value


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(f"{path}: no such file. A task folder needs it; `ksearch init` writes a new one.") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror}. Check the path and its permissions.") from None


def _dotted(path: KeyPath) -> str:
    """("workloads", 2, "axes") -> "workloads[2].axes"."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object, good: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(good(entry) for entry in value)
