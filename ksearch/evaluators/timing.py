"""How fast is it? Candidate, baseline and incumbents take turns on the same fresh values; ratios come from pairs.

One turn: the others are stopped, the oracle is idle, every call has new values, the caches are flushed by the
runner's own loop. The runner reports the times, since only it is close enough; `outside` bounds what it reports.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import numpy as np

from ksearch.definition import Workload
from ksearch.evaluators import stats, verdicts
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.processes import Ended
from ksearch.evaluators.stages import judging_off, poison
from ksearch.evaluators.subject import Subject
from ksearch.evaluators.track import Track, quick
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Ratio, Verdict

MAX_SETS = 48
UNDECIDED = 3  # times the budget, for what may be an improvement
LEAST_CALLS, LONG_CALL_MS = 5, 10.0  # calls in a turn, unless they are as long as this
LEAST_LARGE, LARGE_BYTES = 3, 1 << 20  # or their buffers as large, so that fresh values take far longer than calls
FEW_ROUNDS, STEP = 6, 3
SURELY_WORSE, NOTHING = 0.98, 1.01  # no more rounds for a ratio under the one, or an interval that ends under the other
INTERRUPTED, INTERRUPTED_NS = 0.9, 2_000_000  # computing is that much shorter than every call of a turn
LARGEST_KEPT_BYTES = 512 << 20  # of a GPU's memory, from candidate to candidate, per runner and workload
REFERENCE_S = 0.004  # spent on references per turn


class OtherFailed(Exception):
    """Baseline or incumbent failed while timed beside the candidate: not the candidate's fault."""

    def __init__(self, subject: Subject, failed: Failed) -> None:
        super().__init__(f"{subject.key}: {failed.verdict}: {failed.reason}")
        self.subject = subject


class Timer:
    """Times one candidate beside others on every timed workload."""

    def __init__(
        self, bench: Bench, candidate: Subject, baseline: Subject, incumbents: Sequence[Subject], budget_s: float
    ) -> None:
        self.bench, self.candidate, self.baseline = bench, candidate, baseline
        self.others = [baseline, *incumbents]
        self.budget_s = budget_s
        self.off = judging_off(bench)
        self.deadline = time.monotonic() + bench.spec.limits.time_s
        self.random = random.Random()  # which sets are judged by the reference must not be guessed
        self.rng = np.random.default_rng()
        self.tracks: dict[str, Track] = {}
        self.waited_ns = 0  # in the last turn: on our clock, but not computing
        self.control: Subject | None = None  # beside a Python candidate: a program that does nothing

    @property
    def subjects(self) -> list[Subject]:
        return [self.candidate, *self.others, *([self.control] if self.control else [])]

    @property
    def exact(self) -> bool:
        """What the candidate does in a turn is known from outside, to some microseconds."""
        return self.bench.flushes and self.candidate.accountable

    def begin(self, candidate_ms: dict[str, float], baseline_ms: dict[str, float], longer: float = 1.0) -> None:
        """Make the buffer sets; the first turns warm up and give the length of a call.

        `longer`: so many times the usual number of sets, for queued calls, where memory allows it.
        """
        self._renew()
        target, room = self.bench.options.call_target_ms, self.bench.sets_bytes(len(self.subjects))
        for workload in self.bench.spec.workloads:
            if not workload.timed:
                continue
            slow = max(candidate_ms.get(workload.name, 1.0), 1e-4)
            fast = max(min(slow, baseline_ms.get(workload.name, slow)), 1e-4)
            most = max(2, min(MAX_SETS, room // max(self.bench.set_bytes(workload.axes), 1)))
            sets = min(most, max(2, math.ceil(target * longer / fast)))
            usual = LEAST_LARGE if self.bench.set_bytes(workload.axes) > LARGE_BYTES else LEAST_CALLS
            least = usual if slow < LONG_CALL_MS else 2
            sets = min(most, max(least, sets))
            use = min(sets, max(least, math.ceil(target / math.sqrt(slow * fast))))
            if not self.bench.options.on(Defence.FRESH_ADDRESSES):
                sets = use = 1
            track = self.tracks[workload.name] = Track(workload, sets, use)
            for subject in self.subjects:
                track.samples[subject.key], track.outside[subject.key] = [], []
                track.waited[subject.key] = []
                self._map(subject, workload, sets)
                if self.bench.options.on(Defence.STOP_OFF_TURN):
                    self._stop(subject, workload)  # or it could see the values before its turn
            for other in self.others:
                track.logs[other.key] = []
            self.round(track, count=False)

    def _renew(self) -> None:
        """As the candidate's process and buffers are new, so are everybody's: where a process's pages happen to lie
        makes it a percent faster or slower, and that must not stay with one of them for a whole search.
        """
        for other in self.others if self.bench.spec.device == "cpu" else ():  # a GPU's take long to start
            if other.sets:
                try:
                    other.renew()
                except Failed as failed:
                    raise OtherFailed(other, failed) from failed

    def release(self) -> None:
        """Give back the memory of large sets: a GPU has not enough for those of the confirmation beside them."""
        for track in self.tracks.values() if self.bench.spec.device == "cuda" else ():
            if track.sets * self.bench.set_bytes(track.workload.axes) > LARGEST_KEPT_BYTES:
                for subject in self.subjects:
                    subject.forget(f"{track.workload.name}/t")

    def _map(self, subject: Subject, workload: Workload, sets: int) -> None:
        try:
            subject.map(f"{workload.name}/t", workload.axes, sets)
        except Failed as failed:
            raise self._whose(subject, failed, workload) from failed

    def _whose(self, subject: Subject, failed: Failed, workload: Workload) -> Exception:
        if subject is not self.candidate:
            return OtherFailed(subject, failed)
        failed.workload = workload.name
        return failed

    def rounds(self, track: Track, least: int, most: int, budget_s: float) -> None:
        """Sample pairs until they are enough: `most`, an interval that is narrow, or the budget."""
        start = time.monotonic()
        while track.rounds < most:
            if track.rounds >= least and track.half_width(self.rng) <= self.bench.options.target_half_width:
                break
            over = time.monotonic() - start > budget_s and track.rounds >= min(3, least)
            if over or time.monotonic() > self.deadline:
                break
            self.round(track, count=True)
        track.spent_s += time.monotonic() - start

    def sample(self) -> None:
        """All workloads, up to the budget; then what is undecided, the least certain workload first, up to a cap."""
        options, count, start = self.bench.options, max(len(self.tracks), 1), time.monotonic()
        for least in (min(FEW_ROUNDS, options.min_rounds), options.min_rounds):
            for track in self.tracks.values():
                left_s = max(self.budget_s / count - track.spent_s, 0.0)
                self.rounds(track, least, least if least < options.min_rounds else options.max_rounds, left_s)
            if self._beaten():
                return
        cap_s = UNDECIDED * self.budget_s if self.others[1:] else min(options.time_cap_s, 2 * self.budget_s)
        while time.monotonic() - start < cap_s and time.monotonic() < self.deadline:
            worst = self._least_certain()
            if worst is None:
                return
            self.rounds(worst, worst.rounds + STEP, worst.rounds + STEP, self.budget_s)

    def ratio(self, other: Subject) -> Ratio:
        """`other`'s time over the candidate's, as a mean over workloads."""
        logs = {name: track.logs[other.key] for name, track in self.tracks.items()}
        return stats.combine(logs, self.bench.spec.mean, self.rng, stats.robust)[0]

    def _beaten(self) -> bool:
        """Surely slower than everybody it is held against, and by more than a trifle."""
        return bool(self.others[1:]) and all(self.ratio(other).high < SURELY_WORSE for other in self.others[1:])

    def _least_certain(self) -> Track | None:
        """The workload to go on with; None: everything is decided, or as narrow as it gets."""
        options = self.bench.options
        tracks = [track for track in self.tracks.values() if track.rounds < options.max_rounds]
        width, _, track = max(((t.half_width(self.rng), n, t) for n, t in enumerate(tracks)), default=(0.0, 0, None))
        if not self.others[1:]:
            return track if width > options.wide_half_width else None
        found = [self.ratio(other) for other in self.others[1:]]
        undecided = any(r.low <= 1 < r.value and r.high > NOTHING for r in found)
        return track if undecided and width > options.target_half_width / 2 else None

    def round(self, track: Track, *, count: bool) -> None:
        sets = [(track.first + i) % track.sets for i in range(track.use)]
        track.first = (track.first + track.use) % track.sets
        self.fill(track, sets)
        order = self.subjects if track.turns % 2 else self.subjects[::-1]
        track.turns += 1
        took: dict[str, float] = {}
        for subject in order:
            ns, seen = self.turn(track, subject, sets, flush=self.bench.options.on(Defence.CACHE_FLUSH))
            took[subject.key] = self._each(subject, ns, seen)
            if count:
                track.samples[subject.key].append(ns)
                track.outside[subject.key].append(seen)
                track.waited[subject.key].append(max(self.waited_ns, 0))
        self.judge(track, sets)
        if self.exact and self.control is None:
            # Everybody's, in turn: who ran last finds its own code and page tables in the caches.
            empty = {subject.key: self.turn(track, subject, [], flush=False)[1] for subject in order}
            track.empty.append(empty[self.baseline.key])
        if count:
            mine = max(took[self.candidate.key], 1)
            for other in self.others:
                track.logs[other.key].append(math.log(max(took[other.key], 1) / mine))

    def _each(self, subject: Subject, ns: list[int], seen: int) -> float:
        """A turn in one number: its quick calls; of long calls, each of which was interrupted, the computing."""
        each, computed = quick(ns), seen / len(ns)
        if self.exact and subject.accountable and each > INTERRUPTED_NS and computed < INTERRUPTED * each:
            return computed
        return each

    def fill(self, track: Track, sets: list[int]) -> None:
        """New values, the same for everybody, and new poison.

        The reference is computed where it costs little, and now and then in any case; the other outputs are held
        against the baseline's, which saw the same values.
        """
        keys = [f"{s.key}/{track.workload.name}/t" for s in self.subjects]
        kind = poison(self.bench, "nan" if track.turns % 2 else "values")
        if not self.bench.options.on(Defence.FRESH_VALUES):
            old = [i for i in sets if i in track.given]
            for key in keys if old else ():
                order = {"do": "again", "key": key, "sets": old, "poison": kind, "flush": self.bench.flushes}
                self.bench.oracle.ask(order)
            sets = [i for i in sets if i not in track.given]
            track.given.update(sets)
            if not sets:
                return
        affordable = int(REFERENCE_S / track.reference_s) if track.reference_s else 1
        count = min(len(sets), max(affordable, track.turns % 4 == 0))
        order = {
            "do": "fill", "keys": keys, "sets": sets, "expect": self.random.sample(sets, count), "poison": kind,
            "flush": self.bench.flushes,
        }  # fmt: skip
        answer, _ = self.bench.oracle.ask(order)
        track.reference_s = max(float(answer["reference_s"]), 1e-6)

    def turn(
        self, track: Track, subject: Subject, sets: list[int], *, flush: bool, queued: bool = False
    ) -> tuple[list[int], int]:
        """One turn: (what the runner reports per call, time from before `resume` to after `stop`).

        No thread of the process runs outside that span, so whatever it does for these calls is in it. By the kernel's
        count of its processor time where that holds all of its work, else by our clock.
        """
        group, left_s = f"{track.workload.name}/t", max(self.deadline - time.monotonic(), 1.0)
        start = time.perf_counter_ns()
        try:
            subject.process.resume()
            if queued and not self.bench.flushes:
                subject.ask({"do": "flush", "key": group, "sets": sets}, (), left_s)
            ns = subject.run(group, sets, flush=flush and not self.bench.flushes, limit_s=left_s)
            if self.bench.options.on(Defence.STOP_OFF_TURN):
                subject.process.stop()
        except Failed as failed:
            raise self._whose(subject, failed, track.workload) from failed
        except Ended as error:
            ended = verdicts.of_ending(error, subject.log)
            raise self._whose(subject, ended, track.workload) from error
        took, computed = time.perf_counter_ns() - start, subject.process.turn_cpu_ns
        self.waited_ns = took - computed if computed is not None else 0
        return ns, took if computed is None or not subject.accountable else computed

    def _stop(self, subject: Subject, workload: Workload) -> None:
        try:
            subject.process.stop()
        except Ended as error:
            raise self._whose(subject, verdicts.of_ending(error, subject.log), workload) from error

    def judge(self, track: Track, sets: list[int]) -> None:
        if not self.bench.options.on(Defence.TIMED_OUTPUTS):
            return
        key = f"{self.candidate.key}/{track.workload.name}/t"
        peer = f"{self.baseline.key}/{track.workload.name}/t"
        order = {"do": "judge", "key": key, "sets": sets, "peer": peer, "off": self.off}
        answer, _ = self.bench.oracle.ask(order)
        if answer["fault"]:
            text = f"in a timed call: {answer['fault']['reason']}"
            raise Failed(Verdict(answer["fault"]["verdict"]), text, self.candidate.log, track.workload.name)
