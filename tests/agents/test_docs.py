"""The page on agents says what is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from ksearch.mcp.server import _ACTING, _LOOKING
from ksearch.models.presets import PRESETS
from tests.cli.shell import shell_in

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_settings_it_shows_can_be_read_and_start_this_command() -> None:
    shown = [json.loads(text) for text in blocks("json")]
    entries = [(body.get("mcpServers") or body["servers"])["ksearch"] for body in shown]
    tables = [tomllib.loads(text)["mcp_servers"]["ksearch"] for text in blocks("toml")]
    assert len(entries) >= 4
    assert len(tables) == 2
    for entry in [*entries, *(t for t in tables if "command" in t)]:
        assert (entry["command"], entry["args"][0]) == ("ksearch", "mcp")


def test_the_options_it_names_exist(tmp_path: Path) -> None:
    known = shell_in(tmp_path)("mcp", "--help")
    ours = {"--task", "--store", "--http", "--port", "--host", "--called", "--lease", "--any-folder", "--no-measure",
            "--instructions"}  # fmt: skip
    for option in ours:
        assert option in PAGE
        assert option in known


def test_every_tool_is_described_once() -> None:
    table = PAGE[PAGE.index("## The tools") : PAGE.index("An answer begins")]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`([a-z_]+)`", " ".join(rows))) == sorted((*_LOOKING, *_ACTING))


def test_every_preset_is_described() -> None:
    text = (DOCS / "models.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `command:([a-z]+)` \|", text, re.MULTILINE)) == set(PRESETS)
