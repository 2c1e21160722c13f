"""The exported file in a real browser, opened from disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ksearch.frozen import frozen_answers, frozen_page
from ksearch.store import open_store
from tests.export.hostile import hostile_run
from tests.export.test_frozen import searched

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
VIEWS = ("tree", "overview", "programs", "workloads", "calls", "workers", "integrity", "compare", "export")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, store = tmp_path_factory.mktemp("frozen"), open_store(":memory:")
    found = {}
    for run in (searched(store), hostile_run(store)):
        found[run.id] = folder / f"{run.id}.html"
        found[run.id].write_text(frozen_page(frozen_answers(store, run.id)), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1200, "height": 800})
        browser.close()


def until(page: Page, holds: str) -> None:
    """Wait for a condition. Not `wait_for_function`: it runs text as code within the page, which the policy forbids."""
    end = time.monotonic() + 20
    while not page.evaluate(holds):
        assert time.monotonic() < end, f"{holds}\n{page.inner_text('body')[:2000]}"
        page.wait_for_timeout(50)


class Watch:
    """What a page complains of, and what it asks for."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.mark.parametrize("run", ["fake-1", "hostile"])
def test_every_view_opens_from_disk_and_asks_nobody(page: Page, files: dict[str, Path], run: str) -> None:
    watch, address = Watch(page), files[run].as_uri()
    page.goto(address)
    page.wait_for_selector("text=Frozen at")
    for view in VIEWS:
        page.goto(f"{address}#/{run}/{view}")
        until(page, f"document.querySelector('nav [aria-current]')?.href.endsWith('/{view}')")
        page.wait_for_timeout(150)
        text = page.inner_text("main")
        assert "This view failed" not in text, text
        assert len(text) > 20, view
    assert page.evaluate("globalThis.PWNED") is None
    assert page.evaluate("document.querySelectorAll('img[src=x], textarea, iframe').length") == 0
    assert watch.complaints == []
    assert [url for url in watch.requests if not url.startswith((address, "data:"))] == []


@pytest.mark.parametrize("run", ["fake-1", "hostile"])
def test_a_program_shows_its_source_prompt_and_reply(page: Page, files: dict[str, Path], run: str) -> None:
    watch, address = Watch(page), files[run].as_uri()
    page.goto(address)
    page.wait_for_selector("text=Frozen at")
    best = page.evaluate("KSEARCH_FROZEN['snapshot'].head.best.program")
    page.goto(f"{address}#/{run}/program/{best}")
    page.wait_for_selector(f"text={'// ' if run == 'hostile' else best[:10]}")
    assert "not frozen" not in page.inner_text("main")
    assert page.evaluate("globalThis.PWNED") is None
    assert watch.complaints == []


def test_the_replay_goes_back_in_time(page: Page, files: dict[str, Path]) -> None:
    shown = "[...document.querySelectorAll('[data-node]')].map((row) => row.dataset.node)"
    page.goto(f"{files['fake-1'].as_uri()}#/fake-1/tree?step=0")
    page.reload()
    page.wait_for_selector("text=edit 1 of")
    until(page, f"{shown}.length === 3")
    assert page.evaluate(shown) == ["root", "n1", "n2"]  # what the first plan made
    page.get_by_role("button", name="Now", exact=True).click()
    until(page, f"{shown}.length > 3")


def test_another_run_is_not_in_the_file(page: Page, files: dict[str, Path]) -> None:
    page.goto(f"{files['fake-1'].as_uri()}#/other/tree")
    page.reload()
    page.wait_for_selector("text=not frozen into the exported file")
