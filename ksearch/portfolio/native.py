"""C++ and CUDA C++: each source of a part is compiled by itself, its text unchanged within a namespace of its own.

Without the namespace two parts could not both have a `helper`; and where both have an inline function or template of
one name the linker would quietly keep one of the two. Headers are included before the namespace opens, so that their
guards make the part's own #include lines empty. What a part exports under C's rules has no namespace: a macro renames
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname, join, normpath

from ksearch.definition import C_TYPES, CUDA_TYPES, TaskSpec, Tensor
from ksearch.portfolio.choosing import PortfolioError
from ksearch.portfolio.naming import free_name, label, where
from ksearch.portfolio.rule import Leaf, Rule
from ksearch.replies.csource import CSource, read_c
from ksearch.types import Program

SOURCES = (".cpp", ".cc", ".cxx", ".c", ".cu")  # what the compiler is given
_INCLUDE = re.compile(r'^[ \t]*(#)[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+GCC[ \t]+(?:target|optimize)\b.*$", re.MULTILINE)
_LINKAGE = re.compile(r'(extern)\s*"C"\s*(\{)?')
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_NAMES = frozenset({"__attribute__", "__launch_bounds__", "__declspec", "alignas", "decltype", "noexcept"})
_CUDA_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h", "float8_e4m3fn": "cuda_fp8.h",
                 "float8_e5m2": "cuda_fp8.h"}  # fmt: skip


def compose_native(parts: Sequence[Program], rule: Rule, spec: TaskSpec) -> Program:
    """One program of the parts' language that enters the one that `rule` names.

    Raises:
        PortfolioError: a part includes files in a way that cannot be kept.
    """
    cuda = parts[0].language == "cuda"
    ending = ".cu" if cuda else ".cpp"
    sources: dict[str, str] = {f"dispatch{ending}": _dispatch(parts, rule, spec, cuda)}
    for part in parts:
        sources |= _Part(part, {path: read_c(text) for path, text in part.sources.items()}).files(ending)
    return Program(sources, f"dispatch{ending}::{spec.entry_point}", parts[0].language)


def exported(part: Program) -> str:
    """What the part's entry point is called in the portfolio."""
    return f"{label(part.id)}_{part.entry_point.partition('::')[2]}"


# --- a part ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    program: Program
    read: Mapping[str, CSource]

    def files(self, ending: str) -> dict[str, str]:
        """Its sources under a folder of its own, and for each that is compiled a file that wraps it."""
        name = label(self.program.id)
        found = {}
        for path, text in self.program.sources.items():
            compiled = path.endswith(SOURCES)
            found[f"{name}/{path}{'.inc' if compiled else ''}"] = text
            if compiled:
                found[f"{name}_{re.sub(r'[^A-Za-z0-9]', '_', path)}{ending}"] = self._wrapper(path)
        return found

    def _wrapper(self, path: str) -> str:
        name, id = label(self.program.id), self.program.id
        headers = list(dict.fromkeys(self._headers(path, set())))
        lines = [
            f"// {path} of program {id[:12]}, unchanged, in a namespace of its own. The headers that it asks for",
            "// come first: within the namespace their guards leave nothing of them.",
            *_pragmas(self.program.sources[path]),
            *(
                line
                for header in headers
                for line in (f"#if __has_include(<{header}>)", f"#include <{header}>", "#endif")
            ),
            *(f"#define {symbol} {name}_{symbol}" for symbol in self._exports()),
            f"namespace {name} {{",
            f'#include "{name}/{path}.inc"',
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _headers(self, path: str, seen: set[str]) -> Iterator[str]:
        """Those that are not its own, in order, through its own ones.

        Raises:
            PortfolioError: an include that means something else from another folder.
        """
        seen.add(path)
        text, code = self.program.sources[path], self.read[path].code
        for match in _INCLUDE.finditer(text):
            if code[match.start(1)] != "#":
                continue  # in a comment or a string
            own = self._own(path, match[2], match[3])
            if own is None:
                yield match[2] or match[3]
            elif own not in seen:
                yield from self._headers(own, seen)

    def _own(self, path: str, angled: str | None, quoted: str | None) -> str | None:
        who = f"program {self.program.id[:12]}: {path} includes"
        if angled is not None:
            if normpath(angled) in self.program.sources:
                raise PortfolioError(f"{who} its own file as <{angled}>: only quotes find it from another folder")
            return None
        assert quoted is not None
        beside, top = normpath(join(dirname(path), quoted)), normpath(quoted)
        if beside not in self.program.sources:
            if top in self.program.sources:
                raise PortfolioError(
                    f'{who} "{quoted}" as seen from the top: a portfolio finds files beside each other'
                )
            return None
        if beside.endswith(SOURCES):
            raise PortfolioError(f'{who} "{quoted}", which is compiled by itself too: one of the two has to go')
        return beside

    def _exports(self) -> list[str]:
        """Names with C's linkage that the part defines, its entry point among them."""
        found = {self.program.entry_point.partition("::")[2]}
        for path, text in self.program.sources.items():
            found |= {n for n in _linked(text, self.read[path].code) if any(s.defines(n) for s in self.read.values())}
        return sorted(found)


def _pragmas(text: str) -> list[str]:
    """Those that come before the first header, and so hold for what is in the headers."""
    first = _INCLUDE.search(text)
    head = text[: first.start()] if first else text
    return [
        m[0].strip() for m in _PRAGMA.finditer(head) if head[: m.start()].count("/*") == head[: m.start()].count("*/")
    ]


def _linked(text: str, code: str) -> Iterator[str]:
    """Functions that are declared `extern "C"`, alone or in a block."""
    for match in _LINKAGE.finditer(text):
        if code[match.start(1)] != "e":
            continue
        if match[2]:
            yield from _in_block(code, match.end())
        else:
            yield from _first_name(re.split(r"[;{]", code[match.end() :], maxsplit=1)[0])


def _in_block(code: str, start: int) -> Iterator[str]:
    """Names of functions at the outermost level of a block that begins at `start`."""
    depth, head = 1, start
    for at in range(start, len(code)):
        mark = code[at]
        if mark == "{":
            if depth == 1:
                yield from _first_name(code[head:at])
            depth += 1
        elif mark in "};":
            depth -= mark == "}"
            head = at + 1 if depth <= 1 else head
            if depth == 0:
                return


def _first_name(head: str) -> Iterator[str]:
    yield from [m[1] for m in _CALLED.finditer(head) if m[1] not in _NO_NAMES][:1]


# --- the dispatcher ----------------------------------------------------------------------------------------------


def _dispatch(parts: Sequence[Program], rule: Rule, spec: TaskSpec, cuda: bool) -> str:
    tensors = [t.name for t in (*spec.inputs, *spec.outputs)]
    named: dict[str, str] = {}
    for axis in spec.axes:
        named[axis] = free_name(axis, [*tensors, *named.values()])
    types = CUDA_TYPES if cuda else C_TYPES
    takes = [_parameter(t, types, t in spec.outputs) for t in (*spec.inputs, *spec.outputs)]
    takes += [f"int64_t {name}" for name in named.values()] + (["cudaStream_t stream"] if cuda else [])
    gives = ", ".join([*tensors, *named.values(), *(["stream"] if cuda else [])])
    headers = ["cstdint"]
    if cuda:
        dtypes = [t.dtype for t in (*spec.inputs, *spec.outputs)]
        headers += ["cuda_runtime.h", *dict.fromkeys(_CUDA_HEADERS[d] for d in dtypes if d in _CUDA_HEADERS)]
    lines = [
        f"// A portfolio of {len(parts)} programs for task {spec.name}: the sizes say which of them is called.",
        "// Between two measured sizes the limit is their geometric mean.",
        *(f"#include <{header}>" for header in headers),
        "",
        'extern "C" {',
        *(f"void {exported(part)}({', '.join(takes)});" for part in parts),
        "}",
        "",
        f'extern "C" void {spec.entry_point}({", ".join(takes)}) {{',
        *_branches(rule, {p.id: exported(p) for p in parts}, named, gives, spec, "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _parameter(tensor: Tensor, types: Mapping[str, str], written: bool) -> str:
    const = "" if written or tensor.mutable else "const "
    return f"{const}{types[tensor.dtype]}* {tensor.name}"


def _branches(
    rule: Rule, calls: Mapping[str, str], named: Mapping[str, str], gives: str, spec: TaskSpec, indent: str
) -> list[str]:
    if isinstance(rule, Leaf):
        told = [f"{indent}// {text}" for text in where(spec, rule.workloads)]
        return [*told, f"{indent}{calls[rule.program_id]}({gives});"]
    return [
        f"{indent}if ({' * '.join(named[a] for a in rule.feature)} <= {rule.limit}) {{",
        *_branches(rule.below, calls, named, gives, spec, indent + "    "),
        f"{indent}}} else {{",
        *_branches(rule.above, calls, named, gives, spec, indent + "    "),
        f"{indent}}}",
    ]
