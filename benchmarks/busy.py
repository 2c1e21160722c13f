"""How busy the devices are with many workers: a simulated model, simulated devices, the real driver, log and store.

    python benchmarks/busy.py            # 60 s and 10 s, scaled down 30 times
    python benchmarks/busy.py --scale 60

A model call takes 60 s and an evaluation 10 s of a device, each drawn evenly from within 30% of it, and divided by the
scale. Aims: devices busy at least 80% of the time with 8 in flight on one device, and with 40 on four; at most 5 ms of
the driver's own time per evaluation. Counted from the first evaluation's start to the last one's end: the first plan,
before which nothing can be measured, is told beside it.
"""

from __future__ import annotations

import argparse
import platform
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ksearch.config import load
from ksearch.drivers import Answer, Desk, Job, Measured, drive_many
from ksearch.evaluators.fleet import Fleet
from ksearch.protocol import Lost, Plan, Refusal
from ksearch.run import Run
from ksearch.service.parallel import Parallel, shape
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator, FakePlanner, FakeWriter
from ksearch.types import Action, Program

MODEL_S, EVALUATION_S, SPREAD = 60.0, 10.0, 0.3


def sleep(seconds: float, scale: float) -> None:
    time.sleep(seconds * random.uniform(1 - SPREAD, 1 + SPREAD) / scale)


@dataclass
class SlowPlanner(FakePlanner):
    scale: float = 30.0

    def answer(self, job: Job, prompt: bytes) -> Answer:
        sleep(MODEL_S, self.scale)
        return super().answer(job, prompt)

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Refusal:
        """Three actions a plan, as many as it may add."""
        found = super().read(job, raw, finish)
        if isinstance(found, Refusal) or not found.edits:
            return found
        third = replace(found.edits[0], action=Action(f"third after {job.request.node_id}"))
        return replace(found, edits=(*found.edits, third))


@dataclass
class SlowWriter(FakeWriter):
    scale: float = 30.0

    def answer(self, job: Job, prompt: bytes) -> Answer:
        sleep(MODEL_S, self.scale)
        return super().answer(job, prompt)

    def read(self, job: Job, raw: bytes, finish: str) -> Program | Refusal:
        return Program({"kernel.cpp": raw.decode()}, "kernel.cpp::run", "cpp")


@dataclass
class PretendDevice:
    """One program at a time; notes when it was at work."""

    label: str
    scale: float = 30.0
    model: str = "pretend"
    spans: list[tuple[float, float]] = field(default_factory=list)
    inner: FakeEvaluator = field(default_factory=FakeEvaluator)

    def __post_init__(self) -> None:
        self.alone = threading.Lock()

    def open(self) -> None: ...
    def close(self) -> None: ...
    def build(self, program: Program) -> None: ...

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        with self.alone:
            start = time.monotonic()
            sleep(EVALUATION_S, self.scale)
            self.spans.append((start, time.monotonic()))
        return self.inner.evaluate(program, against)


class StoreClock:
    """Processor time that the driver's thread spends in its store."""

    def __init__(self, store: Store) -> None:
        self.spent_s = 0.0
        for name in ("append", "read", "get_blob"):
            setattr(store, name, self._timed(getattr(store, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            start = time.thread_time()
            try:
                found = method(*given, **named)
                return list(found) if isinstance(found, Iterator) else found
            finally:
                if threading.current_thread() is threading.main_thread():
                    self.spent_s += time.thread_time() - start

        return call


def measure(devices: int, in_flight: int, evaluations: int, scale: float) -> None:
    pretend = [PretendDevice(f"pretend {i}", scale) for i in range(devices)]
    active, width = shape(in_flight)
    loaded = load({"evaluations": evaluations}, {})
    with tempfile.TemporaryDirectory() as folder, Fleet(pretend) as fleet:
        run = Run.create(open_store(Path(folder) / "runs.db"), "run", loaded.config.search, loaded.context())
        desk = Desk(SlowPlanner(scale=scale), SlowWriter(scale=scale), fleet)
        clock = StoreClock(run.store)
        begun, own = time.monotonic(), time.thread_time()
        drive_many(run, desk, Parallel(run, str(in_flight), devices).pools)
        own = time.thread_time() - own - clock.spent_s
    spans = [span for device in pretend for span in device.spans]
    first, last = min(s for s, _ in spans), max(e for _, e in spans)
    busy = sum(e - s for s, e in spans) / (last - first) / devices
    print(
        f"{devices} device{'s' * (devices > 1)}, {in_flight} in flight ({active} actions, {width} programs each): busy "
        f"{busy:.0%} of {last - first:.1f} s with {len(spans)} evaluations, after {first - begun:.1f} s for the first "
        f"plan and program; per evaluation {own / len(spans) * 1e3:.2f} ms of the driver and "
        f"{clock.spent_s / len(spans) * 1e3:.2f} ms of its log's processor time"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=30.0, help="divides all times")
    scale = options.parse_args().scale
    print(f"{platform.machine()}, Python {platform.python_version()}; times divided by {scale:g}")
    for devices, in_flight, evaluations in ((1, 1, 30), (1, 8, 120), (4, 40, 480)):
        measure(devices, in_flight, evaluations, scale)


if __name__ == "__main__":
    main()
