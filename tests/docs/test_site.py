"""What the documentation shows of the code is the code, and every page can be reached."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ksearch.config import RunConfig
from ksearch.drivers.loop import drive

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#\s]+\.md)(#[^)]*)?\)")
SNIPPET = re.compile(r"(<!-- the loop, as it stands in (?:\S+) -->\n```py\n)(.*?)(```\n)", re.DOTALL)


def targets(nav: list[dict[str, Any]]) -> list[str]:
    found = []
    for entry in nav:
        for target in entry.values():
            found += targets(target) if isinstance(target, list) else [target]
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(targets(nav)) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_every_page_can_be_found_from_the_start_page() -> None:
    """Who reads on a code forge sees no navigation."""
    linked = {target for target, _ in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))}
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - linked == {"index.md"}


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["docs/index.md", "docs/concepts.md", "README.md"])
def test_the_loop_is_shown_as_it_is(page: str) -> None:
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    found = SNIPPET.search(text)
    if found is None:
        assert page != "docs/concepts.md"
        return
    source = textwrap.dedent(inspect.getsource(drive))
    if os.environ.get("KSEARCH_UPDATE_DOCS"):
        path.write_text(text[: found.start(2)] + source + text[found.end(2) :], encoding="utf-8")
        return
    assert found[2] == source


def test_the_settings_without_a_flag_that_the_manual_names_exist() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    named = re.search(r"^A few have no flag: (.*?)\.$", text, re.MULTILINE | re.DOTALL)
    assert named
    for name in re.findall(r"`([a-z_]+)`", named[1]):
        assert name == "true" or name in RunConfig.model_fields
