"""The files beside `task.toml`: programs, guides and `reference.py`. Looked at, never run, here."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path

from ksearch.errors import TaskError
from ksearch.syntax import parse
from ksearch.tasks.fields import Section, listed, suggest
from ksearch.tasks.format import LANGUAGES
from ksearch.types import Program

_WANTED = {"inputs": ("axes", "rng"), "reference": ("inputs", "axes")}
_OPTIONAL = {"awkward": ("axes", "rng")}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def read_program(section: Section, folder: Path, symbol: str, languages: tuple[str, ...]) -> Program:
    """A program of the task: `language`, `files`, and `entry_point` where it is not the task's symbol in the
    first file."""
    language = section.choice("language", LANGUAGES)
    if language not in languages:
        section.fail("language", f"{language!r} is not among the task's languages", f"Use {listed(languages)}.")
    files = section.texts("files")
    if not files:
        section.fail("files", "no files", "List at least one, such as files = ['baseline.cpp'].")
    sources = {name: read_file(section, folder, name, "files") for name in files}
    entry_point = section.text("entry_point", f"{files[0]}::{symbol}")
    section.finish()
    try:
        program = Program(sources, entry_point, language)
    except ValueError as error:
        section.fail("entry_point", str(error), f"Write it as {files[0]}::{symbol}.")
    _check_entry_point(section, folder, program)
    return program


def read_file(section: Section, folder: Path, name: str, key: str) -> str:
    path = folder / name
    inside = path.resolve().is_relative_to(folder.resolve())
    if not inside or Path(name).is_absolute() or name != Path(name).as_posix():
        section.fail(key, f"{name!r} is not a plain path inside the task folder", "Copy the file into the folder.")
    if not path.is_file():
        present = sorted(p.name for p in folder.iterdir() if p.is_file())
        fix = f"The folder holds {listed(present)}.{suggest(name, present)}"
        section.fail(key, f"no file {name!r}", fix)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        section.fail(key, f"{name!r} cannot be read as UTF-8 text ({error})", "Save it as UTF-8.")


def _check_entry_point(section: Section, folder: Path, program: Program) -> None:
    file, _, symbol = program.entry_point.partition("::")
    text = program.sources[file]
    if program.language in ("python", "triton"):
        functions = {f.name for f in _parse(folder / file, text).body if isinstance(f, ast.FunctionDef)}
        if symbol not in functions:
            fix = f"Define `def {symbol}(...)`; the file defines {listed(sorted(functions))}."
            section.fail("files", f"{file} has no function {symbol!r}", fix + suggest(symbol, functions))
        return
    code = _COMMENT.sub(" ", text)
    if not re.search(rf"\b{re.escape(symbol)}\s*\(", code):
        fix = f'Define `extern "C" void {symbol}(...)` in it, or set entry_point.'
        section.fail("files", f"{file} has no function {symbol!r}", fix)
    if not re.search(r'extern\s*"C"', code):
        fix = f'Without it the compiler changes the name. Write `extern "C" void {symbol}(...)`.'
        section.fail("files", f'{file} has no extern "C"', fix)


def read_reference(folder: Path) -> str:
    """The text of `reference.py`, after a look at its functions.

    Raises:
        TaskError: no such file, a syntax error (with its line), a missing function, wrong parameters.
    """
    path = folder / "reference.py"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        fix = "Write it with inputs(axes, rng) and reference(inputs, axes)."
        raise TaskError(f"{path}: no such file. {fix}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read as UTF-8 text: {error}. Save it as UTF-8.") from None
    functions = {f.name: f for f in _parse(path, text).body if isinstance(f, ast.FunctionDef)}
    for name, parameters in _WANTED.items():
        if name not in functions:
            signature = f"def {name}({', '.join(parameters)})"
            found = listed(sorted(functions))
            raise TaskError(
                f"{path}: no function {name!r} (it defines {found}). Add `{signature}`.{suggest(name, functions)}"
            )
    for name, parameters in (_WANTED | _OPTIONAL).items():
        if name in functions:
            _check_parameters(path, functions[name], parameters)
    return text


def _check_parameters(path: Path, function: ast.FunctionDef, wanted: tuple[str, ...]) -> None:
    given = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    least = len(given) - len(function.args.defaults)
    if not least <= len(wanted) <= len(given) and not function.args.vararg:
        raise TaskError(
            f"{path}:{function.lineno}: {function.name}({', '.join(given)}) is called with {len(wanted)} "
            f"arguments. Write `def {function.name}({', '.join(wanted)})`."
        )


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return parse(text)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise TaskError(f"{path}:{error.lineno}: {error.msg}: {line!r}. Correct the syntax.") from None
    except ValueError as error:
        raise TaskError(f"{path}: {error}. Remove that byte.") from None


def hash_folder(folder: Path) -> str:
    """SHA-256 over the relative path and content of every file that is not hidden or a cache."""
    entries = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        skipped = any(p.startswith(".") or p == "__pycache__" for p in parts) or path.suffix == ".pyc"
        if path.is_file() and not skipped:
            entries.append(("/".join(parts), hashlib.sha256(path.read_bytes()).hexdigest()))
    return hashlib.sha256(json.dumps(entries, separators=(",", ":")).encode()).hexdigest()
