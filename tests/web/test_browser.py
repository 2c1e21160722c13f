"""The pages in a real browser: every view, live, by keyboard, light and dark, narrow, and with hostile data.

Needs Chromium (Debian's) and Playwright for Python; `.ci/run` installs both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("fastapi", reason="the extra `ui` is not installed")

from playwright.sync_api import Browser, Page, expect, sync_playwright

import ksearch
from ksearch.drivers import drive
from ksearch.run import Run
from ksearch.store import open_store
from ksearch.web.desk import Desk
from tests.web import sample
from tests.web.hostile import LINE, RIGHT_TO_LEFT, SCRIPT, hostile_run
from tests.web.serving import serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

CHROMIUM = os.environ.get("KSEARCH_TEST_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TO_FIRST_EDIT = """() => { const slider = document.querySelector('.replay input'); slider.value = 1;
  slider.dispatchEvent(new Event('input', {bubbles: true})); }"""
DEMOS = Path(ksearch.__file__).parent / "demos"  # real searches, recorded
VIEWS = ("tree", "overview", "programs", "workloads", "calls", "workers", "integrity", "compare", "export")
MARKS = {
    "tree": "[data-node=n1]",
    "overview": ".bigbest",
    "programs": ".pline",
    "workloads": ".heat .cell",
    "calls": ".ccols.pline",
    "workers": ".lane rect",
    "integrity": "h1",
    "compare": "h1, .waiting",
    "export": "code",
}


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("browser") / "runs.db"
    with open_store(place) as store:
        sample.finished(store, "softmax-1", 40)
        sample.finished(store, "softmax-2", 20, seed=5)
    return place


class Seen:
    """A page that must neither fail nor be refused anything, nor speak to anybody else."""

    def __init__(self, chrome: Browser, address: str, **options: Any) -> None:
        self.address = address
        self.base = address.split("?")[0]
        self.troubles: list[str] = []
        self.context = chrome.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("console", lambda m: self.troubles.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("request", self._request)
        self.page.goto(address)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.troubles.append(f"asked elsewhere: {request.url}")

    def go(self, route: str, mark: str | None = None) -> Page:
        self.page.goto(f"{self.base}#/{route}")
        if mark:
            self.page.wait_for_selector(mark, timeout=15_000)
        return self.page

    def close(self) -> None:
        self.context.close()
        gone = ("ERR_CONNECTION", "ERR_INCOMPLETE")  # the server ended before the page did
        assert [t for t in self.troubles if not any(g in t for g in gone)] == []


Opener = Callable[..., Seen]


@pytest.fixture
def opener(chrome: Browser) -> Iterator[Opener]:
    opened: list[Seen] = []

    def make(address: str, **options: Any) -> Seen:
        opened.append(Seen(chrome, address, **options))
        return opened[-1]

    yield make
    for seen in opened:
        seen.close()


@pytest.fixture(scope="session")
def finished(two_runs: Path) -> Iterator[str]:
    with open_store(two_runs, readonly=True) as store, serving(Desk(store, "softmax-1")) as address:
        yield address


# --- views ---


def test_every_view_shows_the_run(finished: str, opener: Opener) -> None:
    seen = opener(finished)
    for view in VIEWS:
        page = seen.go(f"softmax-1/{view}", MARKS[view])
        expect(page.locator("nav.tabs a[aria-current]")).to_have_attribute("href", f"#/softmax-1/{view}")
        expect(page.locator("main")).not_to_contain_text("This view failed")
        expect(page.locator("main")).not_to_contain_text("undefined")
        expect(page.locator("main")).not_to_contain_text("NaN")


@pytest.mark.parametrize("name", sorted(p.name for p in DEMOS.glob("*.jsonl")))
def test_every_view_shows_a_recorded_run(name: str, opener: Opener) -> None:
    with open_store(DEMOS / name) as store:
        run = Run(store, store.runs()[0].id)
        best = run.state.best_id
        baseline = next(iter(run.state.evaluations))
        with serving(Desk(store, run.id)) as address:
            seen = opener(address)
            shows = ["", "?show=measured", "?show=asked", "?show=build", "?against=parent", "?against=baseline"]
            for route in [
                *VIEWS,
                "tree?map=1",
                "tree?step=1",
                *(f"program/{best}{s}" for s in shows),
                f"program/{baseline}",
            ]:
                page = seen.go(f"{run.id}/{route}", MARKS.get(route, "main *"))
                page.wait_for_timeout(200)
                expect(page.locator("main")).not_to_contain_text("This view failed")
                for text in page.locator("main .card h2, main .figures, main .cols").all_inner_texts():
                    assert not any(word in text for word in ("undefined", "NaN", "[object")), route
                assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth + 1"), route
            page = seen.go(f"{run.id}/tree", ".line")
            expect(page.locator(".line svg[aria-label='best, solved']")).to_have_count(1)


def test_tree_shows_the_nodes_the_core_knows(finished: str, two_runs: Path, opener: Opener) -> None:
    with open_store(two_runs, readonly=True) as store:
        state = Run(store, "softmax-1").state
    page = opener(finished).go("softmax-1/tree", MARKS["tree"])
    for id, node in state.tree.items():
        if node.status != "pruned" and id != "root":
            row = page.locator(f"[data-node={id}]")
            expect(row).to_contain_text(node.action.title)
            expect(row).to_contain_text(f"{node.value:.2f}")
            if node.speedup:
                expect(row).to_contain_text(f"{node.speedup.value:.2f}×")
    best = next(n.id for n in state.tree.values() if n.program_id == state.best_id)
    expect(page.locator(f"[data-node={best}] .best").first).to_be_visible()
    page.click("text=Map")
    page.wait_for_selector(".mapcard")
    assert page.locator(".mapcard").count() >= 5


def test_slider_goes_back_to_each_edit_and_to_now(finished: str, opener: Opener) -> None:
    page = opener(finished).go("softmax-1/tree", MARKS["tree"])
    page.wait_for_selector(".replay")
    now = page.locator(".line").count()
    page.evaluate(TO_FIRST_EDIT)
    expect(page.locator(".step")).to_contain_text("plan r0")
    expect(page.locator(".changes")).to_contain_text("inserted")
    expect(page.locator(".line")).not_to_have_count(now)
    page.keyboard.press("]")
    expect(page.locator(".replay")).to_contain_text("edit 3 of")
    page.click(".replay button:has-text('Now')")
    expect(page.locator(".line")).to_have_count(now)


def test_program_shows_code_difference_prompt_reply_and_times(finished: str, two_runs: Path, opener: Opener) -> None:
    with open_store(two_runs, readonly=True) as store:
        run = Run(store, "softmax-1")
        best = run.state.best_id or ""
        text = run.program(best).sources["kernel.cpp"]
    page = opener(finished).go(f"softmax-1/program/{best}", ".source .src")
    shown = page.locator(".source .src").all_inner_texts()
    assert [line.rstrip("\n") for line in shown] == text.split("\n")
    page.keyboard.press("d")
    page.wait_for_selector(".diff .add")
    page.click("text=Measurements")
    expect(page.locator("main")).to_contain_text("rows=2048,cols=2048")
    page.wait_for_selector(".histogram rect")
    page.click("text=Prompt and reply")
    expect(page.locator("main")).to_contain_text("Write the program")
    expect(page.locator("main")).to_contain_text("The second pass is the bottleneck.")
    page.click("text=Build and log")
    expect(page.locator("main")).to_contain_text("g++ -O3")


def test_filters_and_sorting_are_in_the_address(finished: str, opener: Opener) -> None:
    seen = opener(finished)
    page = seen.go("softmax-1/programs", ".pline")
    everything = page.locator(".toolbar .soft").inner_text()
    page.select_option("select[aria-label=verdict]", "passed")
    page.click(".p-speedup[role=columnheader]")
    page.click(".p-speedup[role=columnheader]")
    assert "verdict=passed" in page.url
    assert "sort=speedup" in page.url
    expect(page.locator(".toolbar .soft")).not_to_have_text(everything)
    first = page.locator(".pline .p-speedup").all_inner_texts()
    values = [float(t.replace("★", "").split("×")[0]) for t in first]
    assert values == sorted(values, reverse=True)


# --- live ---


def test_page_follows_a_search_while_it_runs(tmp_path: Path, opener: Opener) -> None:
    place = tmp_path / "live.db"
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 12)
        with serving(Desk(viewed, "live-1", lambda: open_store(place), "alice")) as address:
            page = opener(address).go("live-1/tree", ".waiting")
            expect(page.locator(".waiting")).to_contain_text("awaited")
            driver = threading.Thread(target=drive, args=(run, sample.desk(3, 0.05)))
            driver.start()
            page.wait_for_selector("[data-node=n3]", timeout=20_000)
            driver.join(60)
            expect(page.locator(".pill")).to_contain_text("ended: budget: evaluations", timeout=10_000)
            best = run.refresh().evaluations[run.state.best_id or ""].speedup
            assert best
            expect(page.locator(".headline")).to_contain_text(f"{best.value:.2f}×")


def test_verbs_take_effect_and_come_back(tmp_path: Path, opener: Opener) -> None:
    place = tmp_path / "verbs.db"
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 6)
        with serving(Desk(viewed, "live-1", lambda: open_store(place), "alice")) as address:
            page = opener(address).go("live-1/tree", ".detail")
            page.click("text=Add action")
            page.fill(".dialog input[type=text]", "Use a lookup table")
            page.click(".dialog button.primary")
            page.wait_for_selector("[data-node=n1]")
            page.click("[data-node=n1]")
            page.click(".detail button:has-text('Pin')")
            expect(page.locator("[data-node=n1]")).to_contain_text("pinned")
            page.click(".detail button:has-text('Boost')")
            page.fill(".dialog input[type=number]", "0.97")
            page.keyboard.press("Enter")
            expect(page.locator("[data-node=n1]")).to_contain_text("0.97")
            page.click(".bar button:has-text('Pause')")
            page.fill(".dialog input", "lunch")
            page.click(".dialog button.primary")
            expect(page.locator(".pill")).to_contain_text("paused: lunch")
            page.click(".bar button:has-text('Resume')")
            expect(page.locator(".pill")).not_to_contain_text("paused")
            page.click(".detail button:has-text('Prune')")
            page.click(".dialog button.primary")
            expect(page.locator(".treepane")).to_contain_text("1 pruned branch")
    state = run
    assert [e.body["command"]["type"] for e in _log(place) if e.body["type"] == "commanded"] == [
        "add_action",
        "pin",
        "boost",
        "pause",
        "resume",
        "prune_node",
    ]
    assert state.id == "live-1"


def _log(place: Path) -> list[Any]:
    with open_store(place, readonly=True) as store:
        return list(store.read("live-1"))


def test_refused_command_says_why_and_a_view_offers_none(finished: str, tmp_path: Path, opener: Opener) -> None:
    page = opener(finished).go("softmax-1/tree", MARKS["tree"])
    assert page.locator("button:has-text('Resume'), button:has-text('Add action')").count() == 0
    place = tmp_path / "refused.db"
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        sample.begin(store, "live-1", 6)
        with serving(Desk(viewed, "live-1", lambda: open_store(place))) as address:
            seen = opener(address)
            page = seen.go("live-1/tree", ".detail")
            page.click("text=Add action")
            page.click(".dialog button.primary")
            expect(page.locator(".toast.bad")).to_contain_text("an action needs a title")
            expect(page.locator(".dialog")).to_be_visible()
            seen.troubles[:] = [t for t in seen.troubles if "422" not in t]  # the browser notes the refusal itself


def test_line_that_is_lost_is_shown_and_found_again(tmp_path: Path, opener: Opener) -> None:
    place = tmp_path / "lost.db"
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 6)
        with serving(Desk(viewed, "live-1")) as address:
            seen = opener(address)
            page = seen.go("live-1/tree", ".health")
            expect(page.locator(".health")).to_contain_text("● live", timeout=10_000)
            port = int(address.split(":")[2].split("/")[0])
        expect(page.locator(".health")).to_contain_text("line lost", timeout=10_000)
        run.command(sample.ev.Pause("while the line was lost"), "bob")
        with serving(Desk(viewed, "live-1"), port=port):
            expect(page.locator(".pill")).to_contain_text("while the line was lost", timeout=15_000)
            expect(page.locator(".health")).to_contain_text("● live", timeout=10_000)
        seen.troubles[:] = [t for t in seen.troubles if "ERR_" not in t]


# --- keyboard ---


def test_keys_walk_search_and_help(finished: str, opener: Opener) -> None:
    page = opener(finished).go("softmax-1/tree/n1", MARKS["tree"])
    page.keyboard.press("j")
    expect(page.locator(".line.chosen")).not_to_have_attribute("data-node", "n1")
    page.keyboard.press("k")
    expect(page.locator(".line.chosen")).to_have_attribute("data-node", "n1")
    page.keyboard.press("/")
    page.keyboard.type("threads")
    expect(page.locator(".treepane")).to_contain_text("found")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator(".dialog")).to_contain_text("Keys")
    page.keyboard.press("Escape")
    expect(page.locator(".dialog")).to_have_count(0)
    page.keyboard.press("3")
    page.wait_for_selector(".pline")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".source")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


# --- looks ---


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(finished: str, opener: Opener, scheme: str) -> None:
    seen = opener(finished, color_scheme=scheme)
    page = seen.go("softmax-1/tree", MARKS["tree"])
    assert page.evaluate(CONTRAST) >= 4.5
    page.click("button[aria-label^=theme]")
    page.wait_for_timeout(100)
    assert page.evaluate(CONTRAST) >= 4.5
    other = "light" if scheme == "dark" else "dark"
    assert page.evaluate("document.documentElement.dataset.theme") == other
    page.reload()
    page.wait_for_selector(MARKS["tree"])
    assert page.evaluate("document.documentElement.dataset.theme") == other


# The least contrast of a text colour on a ground, by the formula of WCAG 2.
CONTRAST = """() => { const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const linear = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (name) => { canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    canvas.fillRect(0, 0, 1, 1); const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(linear);
    return .2126 * r + .7152 * g + .0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const texts = ['--text', '--soft', '--solved', '--rejected', '--active', '--best'];
  return Math.min(...texts.flatMap((t) => ['--panel', '--bg'].map((b) => ratio(t, b)))); }"""


@pytest.mark.parametrize("width", [640, 390])
def test_narrow_windows_scroll_in_one_direction_only(finished: str, two_runs: Path, opener: Opener, width: int) -> None:
    with open_store(two_runs, readonly=True) as store:
        best = Run(store, "softmax-1").state.best_id
    seen = opener(finished, viewport={"width": width, "height": 800})
    for view in (*VIEWS, f"program/{best}"):
        page = seen.go(f"softmax-1/{view}", MARKS.get(view, ".source"))
        page.wait_for_timeout(150)
        wide = page.evaluate("() => [document.documentElement.scrollWidth, document.querySelector('main').scrollWidth]")
        assert max(wide) <= width + 1, view


def test_motion_stops_where_it_is_not_wanted(finished: str, opener: Opener) -> None:
    page = opener(finished, reduced_motion="reduce").go("softmax-1/tree", ".headline")
    page.evaluate("document.querySelector('.headline').classList.add('news')")
    assert page.evaluate("getComputedStyle(document.querySelector('.headline')).animationName") == "none"


# --- empty, stale, broken ---


def test_empty_stale_and_broken_runs_say_what_is_awaited(tmp_path: Path, opener: Opener) -> None:
    place = tmp_path / "odd.db"
    with open_store(place) as store:
        source = sample.finished(store, "whole", 12)
        store.create_run("named", {})
        sample.begin(store, "begun", 5)
        log = [e.body for e in store.read(source.id)]
        store.create_run("broken", {})
        store.append("broken", 0, [*log[:40], {"type": "judged", "v": 1, "at": 0.0}])
        with serving(Desk(store, "named")) as address:
            seen = opener(address)
            page = seen.go("named/tree", ".waiting")
            expect(page.locator("main")).to_contain_text("no first event yet")
            for view in VIEWS:
                page = seen.go(f"begun/{view}", "main *")
                expect(page.locator("main")).not_to_contain_text("This view failed")
                expect(page.locator("main")).not_to_contain_text("NaN")
            expect(page.locator(".notice").first).to_contain_text("Nobody works on this run; the last event came")
            page = seen.go("broken/tree", ".notice.bad")
            expect(page.locator(".notice.bad")).to_contain_text("event 41")
            expect(page.locator("[data-node=n1]")).to_be_visible()
            page = seen.go("nobody/tree", ".waiting.bad")
            expect(page.locator("main")).to_contain_text("holds no run")
            seen.troubles[:] = [t for t in seen.troubles if "404" not in t]


# --- hostile text ---


def test_hostile_text_is_text_everywhere(tmp_path: Path, opener: Opener) -> None:
    with open_store(tmp_path / "hostile.db") as store:
        run = hostile_run(store)
        program = next(iter(run.state.evaluations))
        with serving(Desk(store, run.id)) as address:
            seen = opener(address)
            seen.page.add_init_script("window.pwned = 0")
            seen.page.reload()
            routes = [
                *VIEWS,
                "tree/n1",
                "tree/n1?step=0",
                "tree/n1?step=1",
                "tree?map=1",
                f"program/{program}",
                f"program/{program}?show=measured",
                f"program/{program}?show=asked",
                f"program/{program}?show=build",
                "integrity?only=all",
            ]
            for route in routes:
                page = seen.go(f"{run.id}/{route}", "main *")
                page.wait_for_timeout(350)
                assert page.evaluate("window.pwned") == 0, route
                assert page.locator("main script, main img, main iframe, main object").count() == 0, route
                expect(page.locator("main")).not_to_contain_text("This view failed")
                assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth + 1"), route
                assert page.evaluate("getComputedStyle(document.querySelector('main')).direction") == "ltr"
            page = seen.go(f"{run.id}/tree/n1", ".detail")
            expect(page.locator(".detail h1")).to_contain_text(SCRIPT)
            expect(page.locator(".detail")).to_contain_text(RIGHT_TO_LEFT)
            page = seen.go(f"{run.id}/program/{program}", ".source")
            expect(page.locator(".source")).to_contain_text(SCRIPT)
            assert len(page.locator(".source").inner_text()) < len(LINE) / 10


def test_memory_stays_where_it_is_while_events_come(tmp_path: Path, chrome: Browser, opener: Opener) -> None:
    """Many small events, none of which adds to the run: neither the page's nodes nor the server's streams grow."""
    place = tmp_path / "many.db"
    with open_store(place) as store, open_store(place, readonly=True) as viewed:
        run = sample.begin(store, "live-1", 6)
        with serving(Desk(viewed, "live-1")) as address:
            seen = opener(address)
            page = seen.go("live-1/tree", ".health")
            expect(page.locator(".health")).to_contain_text("● live", timeout=10_000)

            def say(count: int) -> int:
                for _ in range(count):
                    run.command(sample.ev.Pause("x"), "bob")
                    run.command(sample.ev.Resume(), "bob")
                page.wait_for_timeout(1500)
                return int(page.evaluate("document.querySelectorAll('*').length"))

            first = say(20)
            assert say(150) == first
            assert page.evaluate("performance.getEntriesByType('resource').length") < 250


DIFFS = """async () => { const { diff } = await import('./static/js/diff.js'); let state = 7, tried = 0;
  const draw = (n) => (state = (state * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 400; round += 1) {
    const lines = (n) => Array.from({ length: draw(n) }, () => 'abcd'[draw(4)]);
    const [a, b] = [lines(30), lines(30)]; const edits = diff(a, b); tried += 1;
    const left = edits.filter((e) => e.kind !== '+').map((e) => a[e.a]);
    const right = edits.filter((e) => e.kind !== '-').map((e) => b[e.b]);
    const alike = edits.every((e) => e.kind !== ' ' || a[e.a] === b[e.b]);
    if (left.join() !== a.join() || right.join() !== b.join() || !alike) return [a.join(''), b.join('')]; }
  const big = Array.from({ length: 15000 }, (_, i) => `line ${i}`); const from = performance.now();
  diff(big, big.map((l, i) => (i % 7 ? l : `${l}!`))); return [tried, performance.now() - from < 20000]; }"""


def test_differences_lead_from_one_text_to_the_other(finished: str, opener: Opener) -> None:
    page = opener(finished).go("softmax-1/tree", MARKS["tree"])
    assert page.evaluate(DIFFS) == [400, True]
