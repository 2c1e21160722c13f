"""The exact forms of a reply, in words for a model, and the way back: a program rendered in its form.

The parsers are the law; tests hold that every example here parses.
"""

from __future__ import annotations

import re

from ksearch.replies.languages import LANGUAGES
from ksearch.types import Program

PLAN_EXAMPLE = """\
{
  "assessment": "Tiling won 2.1x, as predicted. The inner loop is now bound by loads of B.",
  "edits": [
    {"op": "insert", "name": "pack", "parent": "root", "title": "Pack B into contiguous panels",
     "rationale": "Strided loads miss the cache; panels are read in order.", "difficulty": 2, "value": 0.8,
     "predicted_speedup": 1.6, "workloads": [], "enabling": false},
    {"op": "insert", "name": "wide", "parent": "pack", "title": "Vectorise the inner loop over packed B",
     "rationale": "Aligned loads become possible.", "difficulty": 3, "value": 0.6, "predicted_speedup": 1.4},
    {"op": "update", "node": "ID_OF_AN_OPEN_NODE", "value": 0.2, "notes": "Gains only at small sizes."},
    {"op": "prune", "node": "ID_OF_ANOTHER", "reason": "Contained in the packing above."}
  ]
}
"""

_PLAN_FORM = """\
Answer with exactly one JSON object, in a ```json block or bare, and nothing after it.
Keys: "edits" (a list, may be empty) and "assessment" (what you make of the last results, a few sentences).
Each edit is one of
- insert: "op", "parent", "title"; optional "name", "rationale", "difficulty" (whole number, 1 easy to 5 research),
  "value" (your priority, 0 to 1), "predicted_speedup" (over the parent's program), "workloads" (names it aims
  at; [] for all), "enabling" (true if it may be slower at first and its children pay off);
- update: "op", "node" and at least one of "value", "difficulty", "notes";
- prune: "op", "node", "reason".
"parent" and "node" are ids of nodes of the tree, as listed at the end; "parent" may also be the "name" of an insert
before it.
Strict JSON: double quotes, no comments, no trailing commas, numbers without quotes, no other keys, no key twice.
Example:
```json
{example}```
"""

_PROGRAM_FORM = """\
Answer with one complete program, in one fenced block that opens and closes at the start of a line:
```{tag}
{example}```
It must define {symbol}; the block is compiled as it stands, so leave nothing out. Write a second version only in place
of the first: two different blocks that define {symbol} are refused.
For several files put a line FILE: and the name directly before each block:
FILE: {file}
```{tag}
...
```
"""

_BRIEF_PROGRAM_FORM = """\
Answer with one complete program in one block:
```{tag}
{example}```
"""

_EXAMPLES = {
    "c": "#include <cmath>\n#include <cstdint>\n\n// helpers, if any, in full\n\n"
    'extern "C" void {symbol}(/* parameters as asked for */) {{\n  // ...\n}}\n',
    "python": "def {symbol}():  # parameters as asked for\n    ...\n",
}


def plan_form() -> str:
    """What a planner is told about the form of its reply (about 380 tokens)."""
    return _PLAN_FORM.replace("{example}", PLAN_EXAMPLE)


def program_example(language: str, symbol: str) -> str:
    """The smallest source in the asked form."""
    return _EXAMPLES[LANGUAGES[language].family].format(symbol=symbol)


def program_form(language: str, entry_point: str, *, brief: bool = False) -> str:
    """What a writer is told about the form of its reply. `entry_point` is "run" or "kernel.cpp::run".

    Args:
        brief: the short form, for small local models: one block, and no word of several files.
    """
    known = LANGUAGES[language]
    file, _, symbol = entry_point.rpartition("::")
    example = program_example(language, symbol)
    form = _BRIEF_PROGRAM_FORM if brief else _PROGRAM_FORM
    return form.format(tag=known.tag, example=example, symbol=symbol, file=file or known.file)


def render_program(program: Program) -> str:
    """The program in the form that `parse_program` reads back identically.

    Sources must have `\\n` newlines and end with one (see `canonical_source`). Each fence is longer than any in its
    source.
    """
    tag = LANGUAGES[program.language].tag
    parts = []
    for path, source in program.sources.items():
        longest = max((len(run) for run in re.findall(r"^`+", source, re.MULTILINE)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"FILE: {path}\n{fence}{tag}\n{source}{fence}\n")
    return "\n".join(parts)


def canonical_source(text: str) -> str:
    """A source as a parsed reply would hold it: `\\n` newlines, one at the end unless it is empty."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if not text or text.endswith("\n") else text + "\n"
