"""How fast is it? Candidate, baseline and incumbents take turns on the same fresh values; ratios come from pairs.

One turn: the others are stopped, the oracle is idle, every call has new values, the caches are flushed by the
runner's own loop. The runner reports the times, since only it is close enough; what it reports is bounded by
`outside`: queued calls on distinct inputs, without flushing, timed by the coordinator's clock.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ksearch.definition import Workload
from ksearch.evaluators import stats, verdicts
from ksearch.evaluators.bench import Bench, Subject
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.processes import Ended
from ksearch.evaluators.stages import judging_off, poison
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Verdict

MAX_SETS = 48
MAX_SET_BYTES = 96 << 20  # of all sets of one runner and workload
SLACK_NS = 40_000  # waking two processes, per order
DISAGREEMENT = 0.05


class OtherFailed(Exception):
    """Baseline or incumbent failed while timed beside the candidate: not the candidate's fault."""

    def __init__(self, subject: Subject, failed: Failed) -> None:
        super().__init__(f"{subject.key}: {failed.verdict}: {failed.reason}")
        self.subject = subject


@dataclass(slots=True)
class Track:
    """Everything measured of one workload. Times in nanoseconds, one list per turn."""

    workload: Workload
    sets: int
    use: int
    samples: dict[str, list[list[int]]] = field(default_factory=dict)  # subject -> turns -> calls
    outside: dict[str, list[int]] = field(default_factory=dict)
    logs: dict[str, list[float]] = field(default_factory=dict)  # other subject -> paired log ratios
    reference_s: float = 0.0
    spent_s: float = 0.0
    first: int = 0
    batches: list[dict[str, Any]] = field(default_factory=list)

    def median_ms(self, key: str) -> float:
        return statistics.median(n for turn in self.samples[key] for n in turn) / 1e6

    @property
    def rounds(self) -> int:
        return len(next(iter(self.logs.values()), ()))

    @property
    def half_width(self) -> float:
        return max((stats.half_width(v) for v in self.logs.values()), default=math.inf)


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
        self.tracks: dict[str, Track] = {}

    @property
    def subjects(self) -> list[Subject]:
        return [self.candidate, *self.others]

    def begin(self, candidate_ms: dict[str, float], baseline_ms: dict[str, float]) -> None:
        """Make the buffer sets; the first turns warm up and give the length of a call."""
        target = self.bench.options.call_target_ms
        for workload in self.bench.spec.workloads:
            if not workload.timed:
                continue
            slow = max(candidate_ms.get(workload.name, 1.0), 1e-4)
            fast = max(min(slow, baseline_ms.get(workload.name, slow)), 1e-4)
            most = max(2, min(MAX_SETS, MAX_SET_BYTES // max(self.bench.set_bytes(workload.axes), 1)))
            sets = min(most, max(2, math.ceil(target / fast)))
            use = min(sets, max(2, math.ceil(target / math.sqrt(slow * fast))))
            if not self.bench.options.on(Defence.FRESH_ADDRESSES):
                sets = use = 1
            track = self.tracks[workload.name] = Track(workload, sets, use)
            for subject in self.subjects:
                track.samples[subject.key], track.outside[subject.key] = [], []
                self._map(subject, workload, sets)
            for other in self.others:
                track.logs[other.key] = []
            self._round(track, count=False)

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
        """Sample pairs until they are enough: `most`, or the budget, or an interval that is narrow enough."""
        start = time.monotonic()
        options = self.bench.options
        while track.rounds < most:
            spent = time.monotonic() - start
            enough = track.rounds >= least and track.half_width <= options.target_half_width
            late = spent > budget_s and track.rounds >= min(3, least)
            if enough or late or time.monotonic() > self.deadline:
                break
            self._round(track, count=True)
        track.spent_s += time.monotonic() - start

    def sample(self) -> None:
        """All workloads up to the budget, `screened` rounds being there already."""
        options, share = self.bench.options, self.budget_s / max(len(self.tracks), 1)
        for track in self.tracks.values():
            self.rounds(track, options.min_rounds, options.max_rounds, max(share - track.spent_s, 0.0))

    def _round(self, track: Track, *, count: bool) -> None:
        sets = [(track.first + i) % track.sets for i in range(track.use)]
        track.first = (track.first + track.use) % track.sets
        kind = "nan" if track.rounds % 2 else "values"
        if track.first == track.sets or count or not track.rounds:
            self._fill(track, sets, kind, whole=not count)
        order = self.subjects if track.rounds % 2 else self.subjects[::-1]
        took: dict[str, float] = {}
        for subject in order:
            ns, outside = self._turn(track, subject, sets, flush=self.bench.options.on(Defence.CACHE_FLUSH))
            took[subject.key] = statistics.median(ns)
            if count:
                track.samples[subject.key].append(ns)
                track.outside[subject.key].append(outside)
        self._judge(track, sets)
        if count:
            mine = max(took[self.candidate.key], 1)
            for other in self.others:
                track.logs[other.key].append(math.log(max(took[other.key], 1) / mine))

    def _fill(self, track: Track, sets: list[int], kind: str, *, whole: bool) -> None:
        fresh = self.bench.options.on(Defence.FRESH_VALUES)
        if not fresh and track.rounds:
            return
        # The reference for as many sets as it costs little; the rest is held against the baseline's outputs.
        affordable = len(sets) if whole and track.reference_s == 0 else int(0.02 / max(track.reference_s, 1e-6))
        some = self.random.sample(sets, min(len(sets), max(affordable, 1 if whole or track.rounds % 4 == 0 else 0)))
        keys = [f"{s.key}/{track.workload.name}/t" for s in self.subjects]
        order = {
            "do": "fill",
            "keys": keys,
            "sets": sets,
            "expect": some if track.reference_s or not whole else sets[:1],
        }
        answer, _ = self.bench.oracle.ask({**order, "poison": poison(self.bench, kind)})
        track.reference_s = max(float(answer["reference_s"]), 1e-6)

    def _turn(
        self, track: Track, subject: Subject, sets: list[int], *, flush: bool, queued: bool = False
    ) -> tuple[list[int], int]:
        stop = self.bench.options.on(Defence.STOP_OFF_TURN)
        left = max(self.deadline - time.monotonic(), 1.0)
        try:
            subject.process.resume()
            if queued:
                subject.ask({"do": "flush", "key": f"{track.workload.name}/t", "sets": sets}, (), left)
            result = subject.run(f"{track.workload.name}/t", sets, flush=flush, limit_s=left)
            if stop:
                subject.process.stop()
        except Failed as failed:
            raise self._whose(subject, failed, track.workload) from failed
        except Ended as error:
            ended = verdicts.of_ending(error, subject.log)
            raise self._whose(subject, ended, track.workload) from error
        return result

    def _judge(self, track: Track, sets: list[int]) -> None:
        if not self.bench.options.on(Defence.TIMED_OUTPUTS):
            return
        key = f"{self.candidate.key}/{track.workload.name}/t"
        peer = f"{self.baseline.key}/{track.workload.name}/t"
        order = {"do": "judge", "key": key, "sets": sets, "peer": peer, "off": self.off}
        answer, _ = self.bench.oracle.ask(order)
        if answer["fault"]:
            text = f"in a timed call: {answer['fault']['reason']}"
            raise Failed(Verdict(answer["fault"]["verdict"]), text, self.candidate.log, track.workload.name)

    def outside(self, total_ms: float, most: int) -> None:
        """Queued calls on distinct inputs by the coordinator's clock.

        Raises:
            Failed: FORGED, the runner's times and the outside's disagree twice.
        """
        if not self.bench.options.on(Defence.OUTSIDE_CLOCK):
            return
        for track in self.tracks.values():
            reason = self._disagreement(track, total_ms, most)
            if reason and (reason := self._disagreement(track, total_ms, most)):
                raise Failed(Verdict.FORGED, reason, workload=track.workload.name)

    def _disagreement(self, track: Track, total_ms: float, most: int) -> str:
        sets = list(range(track.sets))
        per_order_ms = track.median_ms(self.candidate.key) * track.sets
        orders = max(2, min(most, math.ceil(total_ms / max(per_order_ms, 1e-3))))
        seen, said, idle = [], [], []
        for _ in range(orders):
            self._fill(track, sets, "nan", whole=False)
            base, base_outside = self._turn(track, self.baseline, sets, flush=False, queued=True)
            mine, mine_outside = self._turn(track, self.candidate, sets, flush=False, queued=True)
            idle.append(base_outside - sum(base))
            seen.append(mine_outside)
            said.append(sum(mine))
            self._judge(track, sets)
        overhead = statistics.median(idle)
        track.batches.append({"calls": len(sets), "outside_ns": seen, "reported_ns": said, "overhead_ns": overhead})
        return self._compare(track, seen, said, overhead, len(sets))

    def _compare(self, track: Track, seen: list[int], said: list[int], overhead: float, calls: int) -> str:
        """Noise only ever adds time outside, so the least disturbed order of each kind is the fair one."""
        gap = min(s - r for s, r in zip(seen, said, strict=True)) - overhead
        whole = min(seen)
        if gap > DISAGREEMENT * whole + SLACK_NS:
            return (
                f"{calls} calls took {whole / 1e6:.3f} ms by the outside clock, "
                f"the process claims {min(said) / 1e6:.3f} ms"
            )
        warm = (whole - overhead - SLACK_NS) / calls
        cold = track.median_ms(self.candidate.key) * 1e6
        if cold < (1 - DISAGREEMENT) * warm:
            return f"calls take {warm / 1e3:.1f} us when queued, but {cold / 1e3:.1f} us are claimed when timed alone"
        return ""
