"""How long the core and its log take: medians on this machine.

    python benchmarks/core.py

1. one step of a run: ask, tell and the durable append of both, in ms (aim: at most 2);
2. a log of 50,000 events read, checked, decoded and folded, in s (aim: at most 3).
"""

from __future__ import annotations

import platform
import statistics
import tempfile
import time
from pathlib import Path

from ksearch.codec import encode_event
from ksearch.drivers import Job
from ksearch.protocol import Budget, Holder, Lost, Request, SearchConfig
from ksearch.run import Run
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk

EVENTS = 50_000


def long_run(run: Run, events: int, times: list[float]) -> None:
    """Drive with fakes until the log is long enough, timing each ask and tell; answers are not timed."""
    desk, me = fake_desk(), Holder("bench")
    while run.seq < events:
        start = time.perf_counter()
        request = run.take(me)
        taken = time.perf_counter() - start
        if not isinstance(request, Request):
            return
        mind = desk.mind(request.kind)
        if mind is None:
            result = desk.evaluator.evaluate(run.program(request.program_id or ""), [])
            reply = result if isinstance(result, Lost) else result.evaluation
        else:
            job = Job(request, run.state, run.program)
            reply = mind.read(job, mind.answer(job, b"").raw, "")
        start = time.perf_counter()
        run.tell(request.id, reply)
        times.append(taken + time.perf_counter() - start)


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "durable.db")
        times: list[float] = []
        long_run(Run.create(store, "run", SearchConfig(Budget(300))), 3000, times)
        print(f"ask + tell + durable append: median {statistics.median(times) * 1e3:.2f} ms over {len(times)} steps")
        big = Run.create(store, "big", SearchConfig(Budget(100_000), stagnation=7))
        memory = Run.create(open_store("sqlite:///:memory:"), "run", SearchConfig(Budget(100_000), stagnation=7))
        long_run(memory, EVENTS, [])
        bodies = [encode_event(e) for e in memory.log()][1:]
        store.append("big", big.seq, bodies)
        took = []
        for _ in range(3):
            start = time.perf_counter()
            seen = Run(store, "big")
            took.append(time.perf_counter() - start)
        nodes, programs = len(seen.state.tree), len(seen.state.evaluations)
        print(
            f"{seen.seq} events ({nodes} nodes, {programs} programs) read, checked, decoded and folded: "
            f"median {statistics.median(took):.2f} s"
        )


if __name__ == "__main__":
    main()
