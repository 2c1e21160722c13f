"""What holds for the code as a whole: sizes, light imports, a core on the standard library alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILE_LINES = 300  # fewer than this
FUNCTION_LINES = 40  # fewer than this, without the docstring

# Path (or path:function) -> why it may be longer. Keep this short.
ALLOWED: dict[str, str] = {}

# The algorithm, what it reads and writes, and what runs beside a kernel on a bare machine.
CORE = (
    "types", "errors", "expressions", "protocol", "events", "tree", "state", "fold", "budget", "search", "steer",
    "history", "codec", "definition", "holders", "hardware",
)  # fmt: skip


def sources() -> list[Path]:
    return sorted((ROOT / "ksearch").rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function with its length in lines, the docstring not counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node, clean=False) is not None
            docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - docstring


def test_files_and_functions_are_short() -> None:
    offenders = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines >= FILE_LINES and name not in ALLOWED:
            offenders.append(f"{name}: {lines} lines")
        offenders += [
            f"{name}:{function}: {length} lines"
            for function, length in functions(path)
            if length >= FUNCTION_LINES and f"{name}:{function}" not in ALLOWED
        ]
    assert offenders == [], "Too long; split by what each part is for."


def imported_by(statement: str) -> set[str]:
    """Return the top-level modules that are loaded after `statement` in a fresh process."""
    code = f"{statement}\nimport sys; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["ksearch", "ksearch.cli.main"])
def test_import_is_light(module: str) -> None:
    if module != "ksearch" and not (ROOT / "ksearch" / "cli" / "main.py").exists():
        pytest.skip("the command line is not written yet")
    assert imported_by(f"import {module}") & {"torch", "triton", "pydantic_ai", "numpy", "sqlalchemy"} == set()


@pytest.mark.parametrize("module", CORE)
def test_core_imports_the_standard_library_only(module: str) -> None:
    if not (ROOT / "ksearch" / f"{module}.py").exists():
        pytest.skip(f"there is no ksearch.{module}")
    # Compared with an empty process: the environment may load modules of its own at start.
    foreign = imported_by(f"import ksearch.{module}") - imported_by("pass") - set(sys.stdlib_module_names)
    assert foreign == {"ksearch"}
