"""Many at once: model calls and measurements side by side, one thread each, and one thread that keeps the books.

The main thread alone takes requests and records answers, so the run needs no lock, and what watches it is called as
from the straight line. A worker's thread only calls a model or the evaluator and hands the outcome back. Whatever
order the outcomes come in, the log tells it, and a replay of the log gives the same state.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ksearch.drivers.desk import Desk, Errand, Outcome
from ksearch.holders import this_process
from ksearch.protocol import Done, Kind, Request, Wait
from ksearch.run import Run
from ksearch.search import ALL_KINDS, ask

POLL_S = 0.2  # how soon it is noticed that others work on the run, or that somebody wants it to stop
_MINDS = frozenset({Kind.PLAN, Kind.WRITE})


@dataclass(frozen=True, slots=True)
class Pools:
    """How many may be out at once."""

    minds: int  # calls of models
    benches: int  # programs at the evaluator: built, checked or timed. It alone decides who is timed when


def drive_many(
    run: Run,
    desk: Desk,
    pools: Callable[[], Pools],
    stopping: Callable[[], bool] = lambda: False,
    kinds: frozenset[Kind] = ALL_KINDS,
    *,
    stay: bool = False,
) -> Done | Wait:
    """Carry a run forward with many workers. Returns why it stopped: done, paused, or stopped by `stopping`.

    However it ends, work that is out comes home first: what was paid for is recorded. Only an interruption
    (KeyboardInterrupt) leaves at once; then what was held is given back.

    Args:
        pools: asked again each time, so that they may grow and shrink while the run goes on.
        kinds: what can be answered here; the rest comes from outside.
        stay: wait for what comes from outside, until the run has ended or is paused.

    Raises:
        KSearchError: a worker, or whoever keeps the books, met something that asking again cannot mend. The others'
            work is recorded first.
    """
    crew = _Crew(run, desk)
    try:
        while True:
            got = Wait("stopped") if stopping() or crew.failed else _hand_out(crew, pools, kinds)
            if not crew.out and crew.failed:
                raise crew.failed
            if not crew.out and (stopping() or _over(run, got, kinds, stay)):
                return got
            crew.wait()
    finally:
        run.release(crew.holder, "the driver stopped")


def _hand_out(crew: _Crew, pools: Callable[[], Pools], kinds: frozenset[Kind]) -> Done | Wait:
    """Give out work until every pool is full or nothing is wanted; says what is wanted, or why nothing is."""
    try:
        room = pools()
        while free := kinds & crew.free(room):
            got = crew.take(free)
            if not isinstance(got, Request):
                return got
    except Exception as error:  # noqa: BLE001  # others are out: raised by the driver once they are home
        crew.fail(error)
        return Wait("failed")
    return Wait("all are at work")


def _over(run: Run, got: Done | Wait, kinds: frozenset[Kind], stay: bool) -> bool:
    """Nobody of ours is out: whether nothing more can come for us."""
    if isinstance(got, Done) or run.state.paused:
        return True
    if kinds == ALL_KINDS or stay:
        return False
    if isinstance(ask(run.state, run.clock(), ALL_KINDS - kinds), Request):
        return True  # it is wanted from outside
    return any(p.request.kind not in kinds for p in run.state.pending.values() if p.lease)


@dataclass
class _Crew:
    """Who is out, and what came home."""

    run: Run
    desk: Desk
    out: dict[str, Kind] = field(default_factory=dict)  # by request id
    home: queue.SimpleQueue[tuple[Errand, Outcome | BaseException]] = field(default_factory=queue.SimpleQueue)
    failed: BaseException | None = None

    def __post_init__(self) -> None:
        self.holder = this_process("workers")

    def free(self, pools: Pools) -> frozenset[Kind]:
        minds = sum(kind in _MINDS for kind in self.out.values())
        room = _MINDS if minds < pools.minds else frozenset()
        return room | {Kind.EVALUATE} if len(self.out) - minds < pools.benches else room

    def take(self, kinds: frozenset[Kind]) -> Request | Wait | Done:
        """Lease the next piece of work and send somebody with it."""
        desk, run = self.desk, self.run
        got = run.take(self.holder, kinds, render=lambda state, request: desk.prompt(run, state, request))
        if isinstance(got, Request):
            errand = desk.errand(run, got)
            # A daemon, so that a second Ctrl-C need not wait for a model's reply.
            threading.Thread(target=self._fetch, args=(errand,), name=got.id, daemon=True).start()
            self.out[got.id] = got.kind  # only now: who never left never comes home
        return got

    def _fetch(self, errand: Errand) -> None:
        try:
            outcome: Outcome | BaseException = self.desk.fetch(errand)
        except BaseException as error:  # noqa: BLE001  # the end of a thread: raised by the driver
            outcome = error
        self.home.put((errand, outcome))

    def wait(self) -> None:
        """Record all that is home, or wait for a moment where nothing is."""
        try:
            came = self.home.get(timeout=POLL_S)
            while True:
                self._record(*came)
                came = self.home.get_nowait()
        except queue.Empty:
            return

    def _record(self, errand: Errand, outcome: Outcome | BaseException) -> None:
        self.out.pop(errand.job.request.id, None)  # twice out where a lease had run out before it came home
        if isinstance(outcome, BaseException):
            self.fail(outcome)
            return
        try:
            self.desk.record(self.run, errand, outcome, self.holder)
        except Exception as error:  # noqa: BLE001  # others are out: raised by the driver once they are home
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Nothing more is given out. The first failure is the one that is told."""
        self.failed = self.failed or error
