"""Command lines of coding agents as models: how each is asked for one reply, and where it says what it cost.

Flags and output as their public documentation has them at the end of 2026; each preset is tested with a small fake of
that command. As far as a tool lets us, the model has no tools: who is asked for a text need not read this machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ksearch.models.base import Answer, Call
from ksearch.models.replies_of_tools import (
    LAST_MESSAGE,
    codex_said,
    gemini_said,
    opencode_said,
    read_codex,
    read_gemini,
    read_opencode,
    read_result,
    result_said,
)

TAIL = "Follow the instructions above and answer in the form that they ask for."


@dataclass(frozen=True, slots=True)
class Preset:
    """One command line tool.

    Attributes:
        arguments: what comes after the program's name. The folder is for files that it reads or writes; it works in
            another one, which is empty.
        last: what comes after the user's own arguments.
        read: the answer in what it printed, and in the folder.
        said: why it failed, in what it printed; empty if that says nothing.
        system: the system part of a prompt is an argument, and not at the start of its standard input.
        files: what is in the folder, by name.
        environment: variables that are set for it; {files} in them is the folder.
        kept: variables that it is given besides, where they are set.
        tells_usd: it reports what a reply has cost.
    """

    name: str
    arguments: Callable[[Call, Path], list[str]]
    read: Callable[[bytes, Call, Path], Answer]
    said: Callable[[bytes], str]
    last: Sequence[str] = ()
    system: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    kept: Sequence[str] = ()
    tells_usd: bool = False


def _claude_arguments(call: Call, _: Path) -> list[str]:
    given = ["-p", "--output-format", "json", "--tools", "", "--strict-mcp-config", "--no-session-persistence"]
    given += ["--system-prompt", call.system] if call.system else []
    return given + (["--json-schema", json.dumps(call.json_schema)] if call.json_schema else [])


def _qwen_arguments(call: Call, _: Path) -> list[str]:
    given = ["--output-format", "json", "--chat-recording=false"]
    given += ["--extensions", "none", "--allowed-mcp-server-names", "none"]
    return given + (["--system-prompt", call.system] if call.system else [])


_CODEX_WITHOUT = (
    "mcp_servers={}", "web_search=disabled", "features.shell_tool=false", "features.unified_exec=false",
    "features.multi_agent=false", "features.goals=false",
)  # fmt: skip


def _codex_arguments(_: Call, folder: Path) -> list[str]:
    # No --output-schema: it takes schemas in which every key is required, and a plan's edits have optional ones.
    given = ["exec", "--json", "--ephemeral", "--sandbox", "read-only", "--skip-git-repo-check", "--color", "never"]
    for setting in _CODEX_WITHOUT:
        given += ["-c", setting]
    return [*given, "--output-last-message", str(folder / LAST_MESSAGE)]


def _gemini_arguments(_: Call, __: Path) -> list[str]:
    return ["--output-format", "json", "--extensions", "none", "--allowed-mcp-server-names", "none", "-p", TAIL]


def _opencode_arguments(_: Call, __: Path) -> list[str]:
    return ["run", "--format", "json", "--title", "K-Search"]  # without a title it asks the model for one


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "claude",
            _claude_arguments,
            lambda output, *_: read_result("claude", output),
            result_said,
            system=True,
            # It would go on for minutes; the run itself asks again, and can say so.
            environment={"CLAUDE_CODE_MAX_RETRIES": "2"},
            kept=("CLAUDE_CONFIG_DIR",),
            tells_usd=True,
        ),
        Preset("codex", _codex_arguments, read_codex, codex_said, last=("-",), kept=("CODEX_HOME",)),
        Preset(
            "gemini",
            _gemini_arguments,
            read_gemini,
            gemini_said,
            # Where folders must be trusted, it refuses to work in one that it has not seen; ours is empty.
            environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TRUST_WORKSPACE": "true"},
            kept=("GEMINI_CLI_HOME", "GOOGLE_CLOUD_PROJECT"),
        ),
        Preset(
            "qwen",
            _qwen_arguments,
            lambda output, *_: read_result("qwen", output),
            result_said,
            system=True,
            # Else it asks the model after each reply what there is to remember of the user, and keeps it.
            files={"settings.json": '{"memory": {"enableManagedAutoMemory": false}, "tools": {"core": ["none"]}}'},
            environment={"QWEN_CODE_SYSTEM_DEFAULTS_PATH": "{files}/settings.json"},
        ),
        Preset(
            "opencode",
            _opencode_arguments,
            read_opencode,
            opencode_said,
            environment={"OPENCODE_PERMISSION": '{"*": "deny"}'},
            kept=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
            tells_usd=True,  # unless it is a subscription
        ),
    )
}
