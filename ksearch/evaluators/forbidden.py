"""Finds what a program leans on: linked libraries and symbols, or imported modules. Behaviour, not words."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ksearch.evaluators.elf import Symbols
from ksearch.syntax import parse
from ksearch.types import Program

LOADERS = ("dlopen", "dlsym", "dlmopen", "dlvsym")


def in_library(symbols: Symbols, forbid: Sequence[str]) -> str | None:
    """The first forbidden thing that a shared object needs, in words; None if there is none.

    An entry of `forbid` is a library's name or the start of a symbol's: "openblas", "cblas_".
    """
    for entry in forbid:
        for name in symbols.needed:
            if entry in name:
                return f"links {name}, and the task forbids {entry}"
        for name in symbols.imported:
            if name.startswith(entry):
                return f"calls {name}, and the task forbids {entry}"
    loader = next((name for name in symbols.imported if forbid and name in LOADERS), None)
    return f"calls {loader}: this task forbids libraries, so none may be loaded by hand" if loader else None


def in_python(program: Program, forbid: Sequence[str]) -> str | None:
    """The same for Python: modules and attributes by their full names, whatever they were imported as."""
    if not forbid:
        return None
    for path, text in program.sources.items():
        try:
            tree = parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # what does not parse does not run either: the runner will say so
        for name, line in _used(tree):
            for entry in forbid:
                if name == entry or name.startswith(entry + "."):
                    return f"{path}:{line}: uses {name}, and the task forbids {entry}"
    return None


def _used(tree: ast.Module) -> Iterator[tuple[str, int]]:
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}", node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _dotted(node, known)):
            yield name, node.lineno
        elif isinstance(node, ast.Name) and node.id in known:
            yield known[node.id], node.lineno
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield "numpy.matmul", node.lineno
            yield "torch.matmul", node.lineno


def _dotted(node: ast.expr, known: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])
