"""The dashboard's modules as one script: a file that is opened from disk may not import others.

Reads the few forms of import and export that the front end uses; any other is an error here, not in a browser.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_NAMES = r"\{([^{}]*)\}"
_FROM = r"""\s*from\s*["']([^"']+)["'];?"""
_IMPORT = re.compile(rf"^import\s*{_NAMES}{_FROM}", re.M)
_IMPORT_DEFAULT = re.compile(rf"^import\s+(\w+){_FROM}", re.M)
_EXPORT_FROM = re.compile(rf"^export\s*{_NAMES}{_FROM}", re.M)
_EXPORT_NAMES = re.compile(rf"(^|[;\n}}])export\s*{_NAMES};?")
_EXPORT_DEFAULT = re.compile(r"(^|[;\n])export default (\w+);?")
_EXPORT_DECLARED = re.compile(r"^export\s+((?:async\s+)?function|const|class)\s+(\w+)", re.M)
_LEFT = re.compile(r"^(?:import|export)\b", re.M)


class Unlinkable(Exception):
    """A module is written in a way that is not understood here."""


@dataclass
class _Linker:
    read: Callable[[str], str]
    done: dict[str, str] = field(default_factory=dict)  # path -> text, in the order in which they must run
    doing: list[str] = field(default_factory=list)

    def add(self, path: str) -> str:
        """Link a module and, before it, what it imports; return the expression that stands for its exports."""
        if path in self.doing:
            raise Unlinkable(f"{' -> '.join([*self.doing, path])}: modules that import each other")
        if path not in self.done:
            self.doing.append(path)
            self.done[path] = self._linked(path, self.read(path))
            self.doing.pop()
        return f'M["{path}"]'

    def _linked(self, path: str, text: str) -> str:
        exports: list[str] = []

        def other(to: str) -> str:
            return self.add(posixpath.normpath(posixpath.join(posixpath.dirname(path), to)))

        def export_from(m: re.Match[str]) -> str:
            module = other(m[2])
            exports.extend(f"{out}: {module}.{name}" for name, out in _pairs(m[1]))
            return ""

        def export_names(m: re.Match[str]) -> str:
            exports.extend(f"{out}: {name}" for name, out in _pairs(m[2]))
            return m[1]

        def export_default(m: re.Match[str]) -> str:
            exports.append(f"default: {m[2]}")
            return m[1]

        def export_declared(m: re.Match[str]) -> str:
            exports.append(m[2])
            return f"{m[1]} {m[2]}"

        text = _EXPORT_FROM.sub(export_from, text)
        text = _IMPORT.sub(lambda m: f"const {{ {_wanted(m[1])} }} = {other(m[2])};", text)
        text = _IMPORT_DEFAULT.sub(lambda m: f"const {m[1]} = {other(m[2])}.default;", text)
        text = _EXPORT_NAMES.sub(export_names, text)
        text = _EXPORT_DEFAULT.sub(export_default, text)
        text = _EXPORT_DECLARED.sub(export_declared, text)
        if left := _LEFT.search(text):
            line = text[left.start() :].partition("\n")[0][:80]
            raise Unlinkable(f"{path}: this form of import or export is not known: {line}")
        return f'M["{path}"] = (() => {{\n"use strict";\n{text}\nreturn {{ {", ".join(exports)} }};\n}})();\n'


def _pairs(names: str) -> list[tuple[str, str]]:
    """[("a", "b")] for "a as b"; a name without "as" keeps it."""
    parts = [re.split(r"\s+as\s+", part.strip()) for part in names.split(",") if part.strip()]
    return [(part[0], part[-1]) for part in parts]


def _wanted(names: str) -> str:
    return ", ".join(name if name == out else f"{name}: {out}" for name, out in _pairs(names))


def link(start: str, read: Callable[[str], str]) -> str:
    """One classic script that runs the module `start`; `read` gives the text of a module by its path.

    Raises:
        Unlinkable: a module uses a form that is not known here, or two import each other.
    """
    linker = _Linker(read)
    linker.add(start)
    return f"(() => {{\nconst M = {{}};\n{''.join(linker.done.values())}}})();\n"
