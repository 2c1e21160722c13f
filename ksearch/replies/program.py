"""A writer's reply: text to `Program` or `Refusal`. The source is taken as it is, or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ksearch.protocol import Refusal
from ksearch.replies.blocks import Block, TooTangled, read_as, split_blocks
from ksearch.replies.languages import Language, allowed, by_suffix, is_code_tag
from ksearch.replies.text import MAX_PROGRAM_CHARS, nothing_found, prepare, refuse, unparsable
from ksearch.types import Program, Verdict

MAX_FILES = 20
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_CODE_BEGINS = re.compile(
    r"#|//|/\*|(?:extern|static|using|namespace|template|typedef|struct|inline|constexpr|void|__global__|__device__)\b"
)
_CODE_ENDS = ("}", ";", "*/", "#endif")


def parse_program(
    text: str,
    *,
    languages: Sequence[str],
    entry_point: str,
    finish: str | None = None,
) -> Program | Refusal:
    """Read a writer's reply.

    One or several fenced blocks that open at the start of a line; `FILE: path` directly before a fence names the file.
    Exactly one file must define the entry point. Several different candidates are refused as ambiguous, never chosen
    between; newlines become `\\n`, nothing else is changed.

    Args:
        text: the reply.
        languages: allowed languages ("cpp", "cuda", "python", "triton"), the preferred one first.
        entry_point: "run", or "kernel.cpp::run" to name the file that an unnamed block becomes.
        finish: why the model stopped, where known ("length" makes it truncated).

    Raises:
        ValueError: for an unknown language: the caller's mistake, not the model's.
    """
    options = allowed(languages)
    file, _, symbol = entry_point.rpartition("::")
    answer = prepare(text, finish, MAX_PROGRAM_CHARS)
    if isinstance(answer, Refusal):
        return answer
    try:
        blocks = split_blocks(answer, options, symbol)
    except TooTangled as error:
        return unparsable(str(error))
    return _Choice(answer, blocks, options, file, symbol).program()


class _Choice:
    """Which of the blocks are the program. Every way out is a program or a reason."""

    def __init__(self, text: str, blocks: list[Block], options: tuple[Language, ...], file: str, symbol: str) -> None:
        self.text, self.blocks, self.options, self.file, self.symbol = text, blocks, options, file, symbol
        self.form = f"one fenced block ```{options[0].tag} that defines {symbol!r}"

    def program(self) -> Program | Refusal:
        if not self.blocks:
            return self._bare()
        last = self.blocks[-1]
        if not last.closed and last.body.strip():
            reason = (
                f"the block opened in line {last.line} is never closed by a line of ``` alone: the reply is cut off"
            )
            return refuse(Verdict.TRUNCATED, reason)
        named = [block for block in self.blocks if block.name and block.closed]
        return self._named(named) if named else self._unnamed()

    def _bare(self) -> Program | Refusal:
        """A reply without any fence counts only if all of it is plainly code that defines the entry point."""
        body = self.text.strip("\n") + "\n"
        for language in {option.family: option for option in reversed(self.options)}.values():
            plain = language.family == "python" or (
                _CODE_BEGINS.match(body.lstrip()) is not None and body.rstrip().endswith(_CODE_ENDS)
            )
            source = read_as(language.family, body) if plain else None
            if source is not None and not source.problem and source.defines(self.symbol):
                return self._make({self._default_file(language): body}, language)
        return nothing_found(self.text, f"no code block: answer with {self.form}")

    def _default_file(self, language: Language) -> str:
        return self.file if self.file and self.file.endswith(language.suffixes) else language.file

    def _unnamed(self) -> Program | Refusal:
        bodies = {(block.language.name, block.body): block for block in self._entries() if block.language}
        if len(bodies) > 1:
            where = ", ".join(str(block.line) for block in bodies.values())
            return unparsable(
                f"{len(bodies)} different blocks define {self.symbol!r} (lines {where}): give one program"
            )
        for block in bodies.values():
            assert block.language is not None
            return self._make({self._default_file(block.language): block.body}, block.language)
        return self._no_entry()

    def _entries(self) -> list[Block]:
        return [block for block in self.blocks if block.closed and block.defines(self.symbol)]

    def _no_entry(self) -> Refusal:
        ours = [block for block in self.blocks if block.language is not None]
        for block in ours:
            if block.problem:
                return unparsable(
                    f"the block opened in line {block.line} is no whole source ({block.problem} of the block)"
                )
        if ours:
            lines = ", ".join(str(block.line) for block in ours)
            return unparsable(f"no block defines {self.symbol!r} (code in lines {lines}): answer with {self.form}")
        foreign = next((block.tag for block in self.blocks if is_code_tag(block.tag)), None)
        if foreign is not None:
            names = " or ".join(option.name for option in self.options)
            return unparsable(f"wrong language: the code is {foreign[:20]}, asked for was {names}")
        return nothing_found(self.text, f"no block of code: answer with {self.form}")

    def _named(self, named: list[Block]) -> Program | Refusal:
        sources: dict[str, str] = {}
        for block in named:
            if (bad := self._bad_name(block)) is not None:
                return bad
            if sources.setdefault(block.name, block.body) != block.body:
                return unparsable(f"two different versions of {block.name} (the second in line {block.line}): give one")
            if block.problem:
                return unparsable(f"{block.name} is no whole source: {block.problem}")
        if (nested := next((a for a in sources for b in sources if a.startswith(b + "/")), None)) is not None:
            return unparsable(f"{nested} lies under another file of the program: choose another name")
        if len(sources) > MAX_FILES:
            return unparsable(f"{len(sources)} files; at most {MAX_FILES} are taken")
        return self._named_entry(named, sources)

    def _named_entry(self, named: list[Block], sources: dict[str, str]) -> Program | Refusal:
        entries = {block.name: block for block in named if block.defines(self.symbol)}
        bodies = {entry.body for entry in entries.values()}
        for block in self._entries():
            if not block.name and block.body not in bodies:
                return unparsable(
                    f"the unnamed block in line {block.line} also defines {self.symbol!r}: give one program"
                )
        if len(entries) != 1:
            which = f"{len(entries)} files define {self.symbol!r}: {', '.join(entries)}" if entries else ""
            return unparsable(which or f"no file defines {self.symbol!r}: one of them must")
        entry = next(iter(entries.values()))
        language = entry.language
        assert language is not None
        odd = next((name for name in sources if not name.lower().endswith(language.suffixes)), None)
        if odd is not None:
            return unparsable(f"{odd} is no {language.name} source; its names end in {', '.join(language.suffixes)}")
        return self._make(sources, language, entry.name)

    def _bad_name(self, block: Block) -> Refusal | None:
        where = f"line {block.line}"
        if not _PATH.fullmatch(block.name) or len(block.name) > 200:
            wanted = "a relative path of letters, digits and ._+-, without '..'"
            return unparsable(f"{where}: the file name {block.name[:80]!r} must be {wanted}")
        language = by_suffix(block.name, self.options)
        if block.language is None or language is None:
            names = " or ".join(option.name for option in self.options)
            return unparsable(f"{where}: {block.name} is no source in {names}")
        if block.tag and block.tag.lower() not in language.own_tags | language.shared_tags | block.language.own_tags:
            return unparsable(f"{where}: {block.name} stands in a block tagged {block.tag[:20]!r}")
        return None

    def _make(self, sources: dict[str, str], language: Language, entry: str = "") -> Program:
        return Program(sources, f"{entry or next(iter(sources))}::{self.symbol}", language.name)
