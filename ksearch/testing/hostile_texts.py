"""Hostile cases of what is in a completion: contents, usage, programs and plans."""

from __future__ import annotations

import json

from ksearch.testing.hostile_case import Counted, refused, taken
from ksearch.testing.model_server import chat, raw

CONTENTS = (
    refused("empty", "an empty text", chat(""), "is empty"),
    refused("null", "`content: null`", chat(None), "is empty"),
    taken("list", "the content as a list of parts", lambda t: chat([{"type": "text", "text": t}])),
    refused("empty list", "`content: []`", chat([]), "is empty"),
    refused("object", "`content: {}`", chat({"a": 1}), "is empty"),
    refused("only reasoning", "thoughts, no content", lambda t: chat(None, reasoning_content=t), "is empty"),
    refused(
        "redacted reasoning",
        "encrypted thoughts, no content",
        chat(None, reasoning_details=[{"type": "reasoning.encrypted", "data": "abc"}]),
        "is empty",
    ),
    refused("unclosed thoughts", "the answer inside `<think>`", lambda t: chat(f"<think>maybe\n{t}"), "only reasoning"),
    taken("thoughts first", "`<think>`, then the answer", lambda t: chat(f"<think>\nhm\n</think>\n{t}")),
    refused("length", "cut at the limit", lambda t: chat(t[: len(t) // 2], finish="length"), "output limit"),
    refused("length, whole", "looks whole, was cut", lambda t: chat(t, finish="length"), "output limit"),
    refused("error at the end", "breaks off, says so", lambda t: chat(t, finish="error"), "provider reported an error"),
    refused("interrupted", "`insufficient_system_resource`", lambda t: chat(
        t, finish="insufficient_system_resource"), "provider reported an error"),
    taken("odd ending", "`finish_reason: eos`", lambda t: chat(t, finish="eos")),
    refused("content filter", "filtered", chat("", finish="content_filter"), "declined"),
    refused("refusal", "in a field of its own", chat(None, refusal="I can't do that"), "can't do that"),
    refused("refusal in words", "as the reply", chat("I'm sorry, I cannot help with that."), "declines"),
    refused(
        "tool call",
        "calls a tool that nobody offered",
        lambda t: chat(None, finish="tool_calls", tool_calls=[
            {"id": "c1", "type": "function", "function": {"name": "write", "arguments": json.dumps({"text": t})}}]),
        "called a tool",
    ),
    refused("5 MB", "a flood", chat("x" * 5_000_000), "characters"),
    refused(
        "no UTF-8",
        "Latin-1 inside the text",
        lambda t: raw(chat(f"{t}<@>").body.replace(b"<@>", b"\xff")),
        "not valid UTF-8",
    ),
    refused(
        "half a character",
        "stops within a multi-byte character",
        lambda t: raw(chat(f"{t}<@>").body.replace(b"<@>", b"\xe2\x82")),
        "not valid UTF-8",
    ),
    refused("surrogate", "half a pair, as an escape", lambda t: chat(f"{t}\ud83d"), "not valid UTF-8"),
    refused("NUL", "a NUL character", lambda t: chat(f"{t}\0"), "NUL"),
    taken("CRLF", "line ends of Windows", lambda t: chat(t.replace("\n", "\r\n"))),
    taken("byte order mark", "before the text", lambda t: chat(f"\ufeff{t}")),
)  # fmt: skip

_COUNTS = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
USAGES = (
    taken("no usage", "nothing is said of tokens", lambda t: chat(t, usage={}), counted=Counted.ESTIMATED),
    taken(
        "negative usage",
        "`prompt_tokens: -100`",
        lambda t: chat(t, usage={**_COUNTS, "prompt_tokens": -100}),
        counted=Counted.ESTIMATED,
    ),
    taken(
        "absurd usage",
        "`completion_tokens: 10^18`",
        lambda t: chat(t, usage={**_COUNTS, "completion_tokens": 10**18}),
        counted=Counted.ESTIMATED,
    ),
    taken(
        "usage in words",
        "`prompt_tokens: \"many\"`",
        lambda t: chat(t, usage={**_COUNTS, "prompt_tokens": "many"}),
        counted=Counted.ESTIMATED,
    ),
    taken(
        "usage not finite",
        "`prompt_tokens: NaN`",
        lambda t: raw(chat(t).body.replace(b'"prompt_tokens": 100', b'"prompt_tokens": NaN')),
        counted=Counted.ESTIMATED,
    ),
    taken("cached too much", "more cached than there is", lambda t: chat(
        t, usage={**_COUNTS, "prompt_tokens_details": {"cached_tokens": 10**6}})),
)  # fmt: skip


def _draft(text: str) -> str:
    return text.replace("run(", "run (", 1)


PROGRAMS = (
    refused("two drafts", "two programs in one reply", lambda t: chat(f"{t}\nor\n\n{_draft(t)}"), "give one program"),
    taken("prose first", "a plan in a fence, then the program", lambda t: chat(f"```\n1. tile\n```\nNow:\n\n{t}")),
    taken(
        "fence in a comment",
        "a fence at the start of a line of a comment",
        lambda t: chat(t.replace("*/", "\n```\n*/")),
    ),
    taken("no fence", "only code", lambda t: chat(t.replace("```cpp\n", "").replace("```\n", ""))),
    refused("no fence, prose", "prose and code", lambda t: chat("Sure! " + t.replace("```", "")), "no code block"),
    refused("unclosed fence", "no end", lambda t: chat(t.removesuffix("```\n")), "never closed"),
    refused("empty fence", "a fence around nothing", chat("```cpp\n```\n"), "no block"),
    taken("c++", "the tag that is a regular expression", lambda t: chat(t.replace("```cpp", "```c++"))),
    refused(
        "search and replace",
        "an edit of a file that nobody asked for",
        chat("<<<<<<< SEARCH\nvoid run() {}\n=======\nvoid run() { return; }\n>>>>>>> REPLACE\n"),
        "no code block",
    ),
    refused("another language", "Rust", chat("```rust\nfn run() {}\n```\n"), "wrong language"),
    refused("a difference", "a patch", lambda t: chat(t.replace("```cpp", "```diff")), "no "),
    refused("`..` in a name", "`FILE: ../kernel.cpp`", lambda t: chat(f"FILE: ../kernel.cpp\n{t}"), "without '..'"),
    refused("absolute name", "`FILE: /etc/passwd`", lambda t: chat(f"FILE: /etc/passwd\n{t}"), "file name"),
    refused("no entry point", "another function", lambda t: chat(t.replace("run(", "main_(")), "no block defines"),
)
PLANS = (
    refused("half a plan", "the end is missing", lambda t: chat(t[:-4]), "never ends"),
    refused("trailing comma", "`},]`", lambda t: chat(t.replace("}]", "},]")), "line 1"),
    refused("comment", "`// why` in JSON", lambda t: chat(t.replace("[{", "[ // why\n{")), "line 1"),
    refused("NaN", "`value: NaN`", lambda t: chat(t.replace("0.9", "NaN")), "NaN"),
    refused("doubled key", "two values", lambda t: chat(t.replace('"value"', '"value": 0.1, "value"')), "value"),
    refused("two plans", "two different ones", lambda t: chat(f"{t}\nor\n{t.replace('0.9', '0.8')}"), "2 different"),
    refused("unknown key", "one that is not in the form", lambda t: chat(t.replace('"value"', '"worth"')), "worth"),
    refused("unknown node", "under a node that is not there", lambda t: chat(t.replace('"root"', '"n99"')), "n99"),
    refused("out of range", "`value: 7`", lambda t: chat(t.replace("0.9", "7")), "value"),
    refused("Python", "single quotes", lambda t: chat(t.replace('"', "'")), ""),
)
