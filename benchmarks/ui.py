"""How the dashboard holds at 10,000 programs and 2,000 nodes: reading the log, the answers, the browser.

    python benchmarks/ui.py [--programs 10000] [--nodes 2000] [--browser]

The run is made by writing events straight into a store. With --browser (Playwright and Chromium) it measures what a
person waits for: from opening the address to the drawn tree, and from an appended event to its sight on the page.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ksearch import events as ev
from ksearch.codec import encode_event
from ksearch.protocol import Budget, Cost, Holder, Kind, Request, SearchConfig
from ksearch.store import Store, open_store
from ksearch.types import Action, Evaluation, Insert, Ratio, Verdict, WorkloadResult
from ksearch.web.reader import RunReader
from ksearch.web.strict import dumps

SHAPES = tuple(f"rows={2**i},cols={2 ** (14 - i)}" for i in range(2, 10))
CHROMIUM = "/usr/bin/chromium"
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


class Maker:
    """Events of a search that never was: as many actions and programs as wanted, with a new best now and then."""

    def __init__(self, programs: int, nodes: int) -> None:
        self.programs, self.nodes = programs, nodes
        self.at, self.asked, self.best = 1.7e9, 0, 1.0
        self.holder = Holder("worker-0", "host", "", 0, "")

    def events(self) -> Iterator[ev.Event]:
        yield ev.RunStarted(at=self.at, config=SearchConfig(Budget(self.programs + 10), stagnation=7))
        made = 0
        parents = ["root"]
        each, extra = divmod(self.programs, self.nodes)
        for number in range(1, self.nodes + 1):
            if number > made:
                parent = parents[(number * 7919) % len(parents)]
                count = min(3, self.nodes - made)
                yield from self._plan("root" if number == 1 else f"n{number - 1}", parent, made, count)
                made += count
            yield from self._cycle(f"n{number}", each + (number <= extra))
            parents.append(f"n{number}")

    def tick(self) -> float:
        self.at += 3.0
        return self.at

    def _ask(self, kind: Kind, node: str, program: str | None = None) -> Iterator[ev.Event]:
        self.request = Request(f"r{self.asked}", kind, node, program, why="closed" if kind is Kind.PLAN else "")
        self.asked += 1
        yield ev.Asked(at=self.tick(), request=self.request)
        yield ev.Leased(at=self.tick(), request_id=self.request.id, holder=self.holder, deadline=self.at + 600)

    def _received(self) -> ev.Event:
        sha = hashlib.sha256(self.request.id.encode()).hexdigest()
        return ev.Received(
            at=self.tick(), request_id=self.request.id, raw=sha, cost=Cost(2500, 0.01), model="writer", finish="stop"
        )

    def _plan(self, after: str, parent: str, made: int, count: int) -> Iterator[ev.Event]:
        yield from self._ask(Kind.PLAN, after)
        yield self._received()
        edits = tuple(
            Insert(
                parent,
                Action(f"action {i}: tile the loop by {2 ** (i % 7)}", "why " * 20, 1 + i % 5, 1.2),
                0.5,
                id=f"n{i}",
            )
            for i in range(made + 1, made + count + 1)
        )
        yield ev.Planned(at=self.tick(), request_id=self.request.id, edits=edits, assessment="it pays " * 10)

    def _cycle(self, node: str, attempts: int) -> Iterator[ev.Event]:
        last: Evaluation | None = None
        for index in range(attempts):
            yield from self._ask(Kind.WRITE, node)
            yield self._received()
            program = hashlib.sha256(f"{node}/{index}".encode()).hexdigest()
            yield ev.Written(at=self.tick(), request_id=self.request.id, program_id=program)
            yield from self._ask(Kind.EVALUATE, node, program)
            done = self._measured(program)
            yield ev.Evaluated(at=self.tick(), request_id=self.request.id, evaluation=done)
            new_best = done.speedup is not None and done.speedup.value > self.best
            if done.speedup and new_best:
                self.best = done.speedup.value
            yield ev.Judged(
                at=self.tick(),
                node_id=node,
                attempt=index,
                improved=bool(done.speedup),
                beats_parent=new_best,
                new_best=new_best,
                versus_parent=done.speedup,
            )
            last = done if done.speedup else last
        yield ev.CycleClosed(
            at=self.tick(),
            node_id=node,
            reason="stagnation",
            program_id=last.program_id if last else None,
            speedup=last.speedup if last else None,
            gain=last.speedup if last else None,
        )

    def _measured(self, program: str) -> Evaluation:
        draw = int(program[:8], 16) / 2**32
        if draw < 0.15:
            return Evaluation(program, Verdict.WRONG_VALUES, "12 values off", "check", log="x" * 300)
        value = 0.5 + self.asked / 15000 + draw
        results = tuple(
            WorkloadResult(
                s, Verdict.PASSED, latency_ms=1 / value, baseline_ms=1.0, floor_ms=0.1, speedup=_ratio(value)
            )
            for s in SHAPES
        )
        return Evaluation(program, Verdict.PASSED, "", "time", 1 / value, _ratio(value), workloads=results, seconds=2.0)


def _ratio(value: float) -> Ratio:
    return Ratio(value, value * 0.98, value * 1.02)


def make(store: Store, run: str, programs: int, nodes: int) -> tuple[Maker, int]:
    store.create_run(run, {"format": 1})
    maker, batch, seq = Maker(programs, nodes), [], 0
    for event in maker.events():
        batch.append(encode_event(event))
        if len(batch) == 2000:
            seq, batch = store.append(run, seq, batch), []
    return maker, store.append(run, seq, batch)


def timed(label: str, work: Any) -> Any:
    start = time.perf_counter()
    found = work()
    print(f"{label:<52} {1000 * (time.perf_counter() - start):9.0f} ms")
    return found


def server(place: Path, seq: int) -> None:
    with open_store(place, readonly=True) as store:
        reader = RunReader(store, "big", poll_s=0)
        timed("cold: the first part of the log, as JSON", lambda: dumps(reader.snapshot()))
        timed(f"reading the rest of {seq:,} events, once", lambda: [None for _ in iter(reader.refresh, seq)])
        data = timed("snapshot: 2,000 nodes, as JSON", lambda: dumps(reader.snapshot()))
        print(f"{'':<52} {len(data) / 1e6:9.2f} MB")
        page = timed("first page of programs: 2,000 rows, as JSON", lambda: dumps(reader.programs(0, 2000)))
        print(f"{'':<52} {len(page) / 1e6:9.2f} MB")
        timed("snapshot when nothing is new", lambda: dumps(reader.snapshot(seq)))
        timed("tree in the middle of the log", lambda: dumps(reader.tree_at(seq // 2)))
        timed("tree one edit on", lambda: dumps(reader.tree_at(seq // 2 + 60, seq // 2)))
        timed("events: a page of 200 from the middle", lambda: reader.events(seq // 2, 200))
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{'memory of this process at its peak':<52} {peak_kib / 1024:9.0f} MB")


def browser(place: Path, maker: Maker, seq: int) -> None:
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "ksearch.cli.main", "ui", "big", "--store", str(place), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, sync_playwright() as play:
        assert process.stdout
        found = re.search(r"http\S+", process.stdout.readline())
        assert found
        chrome = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = chrome.new_page(viewport={"width": 1440, "height": 900})
        page.goto(found[0], wait_until="commit")
        timed("first visit, log unread: a tree is drawn", lambda: page.wait_for_selector(".line", timeout=120_000))
        timed(
            "until the whole log is read",
            lambda: page.wait_for_function(
                f"() => document.querySelector('nav.tabs a .n')?.textContent === '{maker.nodes}'", timeout=120_000
            ),
        )

        def again() -> None:
            page.reload(wait_until="commit")
            page.wait_for_selector(".line")

        timed("next visit: tree is drawn", again)
        page.wait_for_selector(".staircase canvas")
        page.wait_for_timeout(2500)
        with open_store(place) as store:
            update(page, store, maker, seq)
        frames(page)
        memory(page)
        chrome.close()
        process.terminate()


def update(page: Any, store: Store, maker: Maker, seq: int) -> None:
    """The count in the tab is what changes wherever the new action is drawn."""
    event = ev.Commanded(
        at=maker.tick(), author="bench", command=ev.AddAction("root", Action("new"), 0.5, f"n{maker.nodes + 1}")
    )
    page.evaluate(
        """(wanted) => { window.seen = new Promise((done) => { const look = () =>
      document.querySelector('nav.tabs a .n').textContent === wanted ? done(Date.now()) : requestAnimationFrame(look);
      look(); }); return 0; }""",
        str(maker.nodes + 1),
    )
    start = time.time()
    store.append("big", seq, [encode_event(event)])
    seen = page.evaluate("() => Promise.race([window.seen, new Promise((done) => setTimeout(done, 20000, 0))])")
    print(f"{'from an appended event to its sight on the page':<52} {seen - 1000 * start:9.0f} ms")


def frames(page: Any) -> None:
    script = """async () => { const box = document.querySelector('.virtual');
      const gaps = []; let last = performance.now();
      for (let i = 0; i < 90; i++) { box.scrollTop += 400; await new Promise(requestAnimationFrame);
        const now = performance.now(); gaps.push(now - last); last = now; }
      gaps.sort((a, b) => a - b); return gaps[81]; }"""
    print(f"{'scrolling the tree: nine frames in ten within':<52} {page.evaluate(script):9.0f} ms")


def memory(page: Any) -> None:
    used = page.evaluate("() => performance.memory ? performance.memory.usedJSHeapSize : 0")
    print(f"{'memory of the page (JavaScript)':<52} {used / 1e6:9.0f} MB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--programs", type=int, default=10_000)
    options.add_argument("--nodes", type=int, default=2_000)
    options.add_argument("--browser", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "big.db"
        with open_store(place) as store:
            maker, seq = make(store, "big", given.programs, given.nodes)
        server(place, seq)
        if given.browser:
            browser(place, maker, seq)


if __name__ == "__main__":
    main()
