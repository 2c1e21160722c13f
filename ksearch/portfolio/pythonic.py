"""Python and Triton: each part is a module in a folder of its own, imported by the first call that needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ksearch.definition import TaskSpec
from ksearch.portfolio.choosing import PortfolioError
from ksearch.portfolio.naming import free_name, label, where
from ksearch.portfolio.rule import Leaf, Rule, axes_in
from ksearch.syntax import parse
from ksearch.types import Program

FILE = "dispatch.py"
_HELPERS = ("_FOLDER", "_PARTS", "_loaded", "_part", "_store", "importlib", "sys", "Path")
_SWITCH = re.compile(r"\btorch\.(?:backends\.[\w.]+[ \t]*=[^=\n]+|set_\w+\([^)\n]*\))")

_LOADING = '''\
_FOLDER = Path(__file__).resolve().parent
_PARTS = {
@PARTS@
}
_loaded = {}


def _part(name):
    """A part's own function; its module is imported by the first call that needs it."""
    if name not in _loaded:
        file, function, alone = _PARTS[name]
        if not alone:  # it imports files of its own
            sys.path.insert(0, str((_FOLDER / file).parent))
        spec = importlib.util.spec_from_file_location(name, _FOLDER / file)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _loaded[name] = getattr(module, function)
    return _loaded[name]
'''
_STORING = '''

def _store(found, *outputs):
    """What a part returned, into the outputs: the parts do not all return what they compute."""
    for output, value in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
        output[...] = value
'''


def visible_axes(spec: TaskSpec) -> dict[str, tuple[str, int]]:
    """Axis -> an input and the dimension that tells it. Such a program is given arrays, and no sizes."""
    found: dict[str, tuple[str, int]] = {}
    for tensor in spec.inputs:
        for at, size in enumerate(tensor.shape):
            if size in spec.axes:
                found.setdefault(str(size), (tensor.name, at))
    return {axis: found[axis] for axis in spec.axes if axis in found}


def compose_python(parts: Sequence[Program], rule: Rule, spec: TaskSpec) -> tuple[Program, list[str]]:
    """One program that enters the part that `rule` names, and what is worth knowing about it.

    Raises:
        PortfolioError: two parts have modules of one name, which Python could not tell apart.
    """
    _no_clash(parts)
    fills = {p.id: _arguments(p) == len(spec.inputs) + len(spec.outputs) for p in parts}
    writer = _Writer(spec, rule, fills)
    language = parts[0].language
    if len({p.language for p in parts}) > 1:
        language = "python" if "python" in spec.languages else "triton"
    sources = {f"{label(p.id)}/{path}": text for p in parts for path, text in p.sources.items()}
    notes = _switches(parts)
    if len(set(fills.values())) > 1:
        notes.append(
            "some parts return their outputs and some fill them in: what is returned is copied, and the copy is timed"
        )
    return Program({FILE: writer.text(parts), **sources}, f"{FILE}::{spec.entry_point}", language), notes


def _no_clash(parts: Sequence[Program]) -> None:
    """Raises:
    PortfolioError: the name of a module is not clear.
    """
    owner: dict[str, str] = {}
    for part in parts:
        modules = {PurePosixPath(path).parts[0].removesuffix(".py") for path in part.sources if path.endswith(".py")}
        for module in modules if len(part.sources) > 1 else ():
            if module in owner:
                raise PortfolioError(
                    f"programs {owner[module][:12]} and {part.id[:12]} both have a module {module}, and Python imports "
                    "one of them for both: put each into one file, or leave one out with --program"
                )
            owner[module] = part.id


def _arguments(part: Program) -> int:
    """How many arguments its function is called with, as the evaluator counts; -1: it cannot be told, so it returns."""
    file, _, name = part.entry_point.partition("::")
    try:
        tree = parse(part.sources[file])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return -1
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    if not found or found[-1].decorator_list:
        return -1
    return len(found[-1].args.posonlyargs) + len(found[-1].args.args)


def _switches(parts: Sequence[Program]) -> list[str]:
    """Settings of the whole process that not all parts make alike."""
    made = {
        p.id: frozenset(re.sub(r"\s+", " ", m) for t in p.sources.values() for m in _SWITCH.findall(t)) for p in parts
    }
    odd = sorted(set().union(*made.values()) - frozenset.intersection(*made.values()))
    if not odd:
        return []
    return [f"not all parts set {'; '.join(s.strip() for s in odd)}: it holds for all of them once one has set it"]


@dataclass(frozen=True)
class _Writer:
    """The dispatcher's text. `fills`: the parts that are given their outputs and write into them."""

    spec: TaskSpec
    rule: Rule
    fills: Mapping[str, bool]

    def text(self, parts: Sequence[Program]) -> str:
        spec, filling = self.spec, any(self.fills.values())
        inputs, outputs = ([self._name(t.name) for t in group] for group in (spec.inputs, spec.outputs))
        table = "\n".join(f"    {label(p.id)!r}: {self._entry(p)}," for p in parts)
        lines = [
            f'"""A portfolio of {len(parts)} programs for task {spec.name}: the sizes say which of them is called.',
            "",
            "Between two measured sizes the limit is their geometric mean.",
            '"""',
            "",
            "import importlib.util",
            "import sys",
            "from pathlib import Path",
            "",
            _LOADING.replace("@PARTS@", table).rstrip("\n"),
            *([_STORING.rstrip("\n")] if len(set(self.fills.values())) > 1 else []),
            "",
            "",
            f"def {spec.entry_point}({', '.join([*inputs, *(outputs if filling else [])])}):",
            *self._sizes(),
            *self._branches(self.rule, inputs, outputs, "    "),
        ]
        return "\n".join(lines) + "\n"

    def _entry(self, part: Program) -> str:
        file, _, name = part.entry_point.partition("::")
        return f"({label(part.id) + '/' + file!r}, {name!r}, {len(part.sources) == 1})"

    def _name(self, tensor: str) -> str:
        return free_name(tensor, _HELPERS)

    def _axis(self, axis: str) -> str:
        tensors = [self._name(t.name) for t in (*self.spec.inputs, *self.spec.outputs)]
        return free_name(axis, [*_HELPERS, *tensors])

    def _sizes(self) -> Iterator[str]:
        told = visible_axes(self.spec)
        for axis in self.spec.axes:
            if axis in axes_in(self.rule):
                tensor, at = told[axis]
                yield f"    {self._axis(axis)} = {self._name(tensor)}.shape[{at}]"

    def _branches(self, rule: Rule, inputs: list[str], outputs: list[str], indent: str) -> list[str]:
        if isinstance(rule, Leaf):
            told = [f"{indent}# {text}" for text in where(self.spec, rule.workloads)]
            return [*told, f"{indent}{self._call(rule.program_id, inputs, outputs)}"]
        size = " * ".join(self._axis(a) for a in rule.feature)
        return [
            f"{indent}if {size} <= {rule.limit}:",
            *self._branches(rule.below, inputs, outputs, indent + "    "),
            f"{indent}else:",
            *self._branches(rule.above, inputs, outputs, indent + "    "),
        ]

    def _call(self, program_id: str, inputs: list[str], outputs: list[str]) -> str:
        part = f'_part("{label(program_id)}")'
        if self.fills[program_id]:
            return f"{part}({', '.join([*inputs, *outputs])})"
        called = f"{part}({', '.join(inputs)})"
        return f"_store({called}, {', '.join(outputs)})" if any(self.fills.values()) else f"return {called}"
