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

import numpy as np

from ksearch.definition import Workload
from ksearch.evaluators import stats, verdicts
from ksearch.evaluators.bench import Bench, Subject
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.processes import Ended
from ksearch.evaluators.stages import judging_off, poison
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Verdict

MAX_SETS = 48
LEAST_CALLS, LONG_CALL_MS = 5, 10.0  # calls in a turn, unless they are as long as this
MAX_SET_BYTES = 96 << 20  # of all sets of one runner and workload
SLACK_NS = 40_000  # waking two processes, per order
DISAGREEMENT = 0.05
REFERENCE_S = 0.004  # spent on references per turn
OUTSIDE_TRIES = 5
QUEUED_FRACTION = 0.75  # queued calls also write back what the call before them wrote
FLUSH_SPREAD = 0.2  # flushing costs less where the program has written past the caches
PYTHON_CALL_NS = 2_000  # between the calls of a Python program, seen by the outside clock only


def quick(ns: Sequence[int]) -> float:
    """A turn in one number: the mean of its fastest quarter. What disturbs a machine only ever adds time."""
    return statistics.fmean(sorted(ns)[: max(1, len(ns) // 4)])


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
    turns: int = 0
    first: int = 0
    batches: list[dict[str, Any]] = field(default_factory=list)

    def median_ms(self, key: str) -> float:
        return statistics.median(n for turn in self.samples[key] for n in turn) / 1e6

    def quick_ns(self, key: str) -> float:
        """The middle one of the turns' fast quarters: what the ratios are made of."""
        return statistics.median(quick(turn) for turn in self.samples[key])

    @property
    def rounds(self) -> int:
        return len(next(iter(self.logs.values()), ()))

    def half_width(self, rng: np.random.Generator) -> float:
        return max((stats.half_width(v, rng) for v in self.logs.values()), default=math.inf)


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
            least = LEAST_CALLS if slow < LONG_CALL_MS else 2
            sets = min(most, max(least, sets))
            use = min(sets, max(least, math.ceil(target / math.sqrt(slow * fast))))
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

    def rounds(self, track: Track, least: int, most: int, budget_s: float, cap_s: float) -> None:
        """Sample pairs until they are enough: `most`, an interval that is narrow, or the budget.

        A noisy machine gets up to `cap_s`, if the interval would be wide without it.
        """
        start = time.monotonic()
        options = self.bench.options
        while track.rounds < most:
            spent = time.monotonic() - start
            width = track.half_width(self.rng)
            if track.rounds >= least and width <= options.target_half_width:
                break
            limit_s = cap_s if width > options.wide_half_width else budget_s
            if (spent > limit_s and track.rounds >= min(3, least)) or time.monotonic() > self.deadline:
                break
            self._round(track, count=True)
        track.spent_s += time.monotonic() - start

    def sample(self) -> None:
        """All workloads, up to the budget."""
        options, count = self.bench.options, max(len(self.tracks), 1)
        for track in self.tracks.values():
            left_s = max(self.budget_s / count - track.spent_s, 0.0)
            cap_s = max(options.time_cap_s / count - track.spent_s, 0.0)
            self.rounds(track, options.min_rounds, options.max_rounds, left_s, cap_s)

    def _round(self, track: Track, *, count: bool) -> None:
        sets = [(track.first + i) % track.sets for i in range(track.use)]
        track.first = (track.first + track.use) % track.sets
        self._fill(track, sets)
        order = self.subjects if track.turns % 2 else self.subjects[::-1]
        track.turns += 1
        took: dict[str, float] = {}
        for subject in order:
            ns, outside = self._turn(track, subject, sets, flush=self.bench.options.on(Defence.CACHE_FLUSH))
            took[subject.key] = quick(ns)
            if count:
                track.samples[subject.key].append(ns)
                track.outside[subject.key].append(outside)
        self._judge(track, sets)
        if count:
            mine = max(took[self.candidate.key], 1)
            for other in self.others:
                track.logs[other.key].append(math.log(max(took[other.key], 1) / mine))

    def _fill(self, track: Track, sets: list[int]) -> None:
        """New values, the same for everybody, and new poison.

        The reference is computed where it costs little, and now and then in any case; the other outputs are held
        against the baseline's, which saw the same values.
        """
        keys = [f"{s.key}/{track.workload.name}/t" for s in self.subjects]
        kind = poison(self.bench, "nan" if track.turns % 2 else "values")
        if track.turns and not self.bench.options.on(Defence.FRESH_VALUES):
            for key in keys:
                self.bench.oracle.ask({"do": "again", "key": key, "sets": sets, "poison": kind})
            return
        affordable = int(REFERENCE_S / track.reference_s) if track.reference_s else 1
        count = min(len(sets), max(affordable, track.turns % 4 == 0))
        order = {"do": "fill", "keys": keys, "sets": sets, "expect": self.random.sample(sets, count), "poison": kind}
        answer, _ = self.bench.oracle.ask(order)
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
        """Is what the runner reports borne out by the coordinator's clock?

        Raises:
            Failed: FORGED. Noise only ever adds time outside, so a suspicion is looked at again and again: an
                honest program meets a quiet moment, a forger never does.
        """
        if not self.bench.options.on(Defence.OUTSIDE_CLOCK):
            return
        for track in self.tracks.values():
            reason = ""
            for _ in range(OUTSIDE_TRIES):
                self._queue(track, total_ms, most)
                reason = self._doubt_queued(track) or self._doubt_turns(track)
                if not reason:
                    break
                self._round(track, count=True)
            if reason:
                raise Failed(Verdict.FORGED, reason, workload=track.workload.name)

    def _queue(self, track: Track, total_ms: float, most: int) -> None:
        """Calls on distinct inputs, one after the other in one order, not flushed between."""
        sets = list(range(track.sets))
        per_order_ms = track.median_ms(self.candidate.key) * track.sets
        for _ in range(max(2, min(most, math.ceil(total_ms / max(per_order_ms, 1e-3))))):
            self._fill(track, sets)
            track.turns += 1
            base, base_outside = self._turn(track, self.baseline, sets, flush=False, queued=True)
            mine, mine_outside = self._turn(track, self.candidate, sets, flush=False, queued=True)
            self._judge(track, sets)
            track.batches.append(
                {"calls": len(sets), "outside_ns": mine_outside, "reported_ns": sum(mine),
                 "baseline_outside_ns": base_outside, "baseline_reported_ns": sum(base)}
            )  # fmt: skip

    def _between_ns(self, calls: int) -> int:
        python = self.candidate.program.language == "python"
        return SLACK_NS + (calls * PYTHON_CALL_NS if python else 0)

    def _doubt_queued(self, track: Track) -> str:
        """Queued calls: reported against seen, and against what is claimed for calls timed alone."""
        calls = track.sets
        overhead = statistics.median(b["baseline_outside_ns"] - b["baseline_reported_ns"] for b in track.batches)
        gap = min(b["outside_ns"] - b["reported_ns"] for b in track.batches) - overhead
        whole, slack = min(b["outside_ns"] for b in track.batches), self._between_ns(calls)
        if gap > DISAGREEMENT * whole + slack:
            claimed = min(b["reported_ns"] for b in track.batches)
            return (
                f"{calls} calls took {whole / 1e6:.3f} ms by the outside clock, "
                f"the process claims {claimed / 1e6:.3f} ms"
            )
        queued = (whole - overhead - slack) / calls
        alone = track.quick_ns(self.candidate.key)
        base = min(b["baseline_outside_ns"] for b in track.batches) / calls
        usual = min(1.0, track.quick_ns(self.baseline.key) / max(base, 1.0))
        if alone < QUEUED_FRACTION * usual * queued:
            return (
                f"calls take {queued / 1e3:.1f} us each when queued, "
                f"but {alone / 1e3:.1f} us are claimed for calls timed alone"
            )
        return ""

    def _doubt_turns(self, track: Track) -> str:
        """The timed turns themselves: beyond the calls there is only flushing, of as many bytes for everybody."""
        gaps = {}
        for key in (self.candidate.key, self.baseline.key):
            pairs = zip(track.outside[key], track.samples[key], strict=True)
            gaps[key] = sorted(outside - sum(ns) for outside, ns in pairs)
        mine, base = gaps[self.candidate.key], gaps[self.baseline.key]
        if len(mine) < 4:
            return ""
        claimed = statistics.median(sum(ns) for ns in track.samples[self.candidate.key])
        usual = statistics.median(base)
        limit = usual * (1 + FLUSH_SPREAD) + DISAGREEMENT * claimed + self._between_ns(track.use)
        if mine[len(mine) // 4] > limit:
            return (
                f"beyond the {claimed / 1e6:.3f} ms that it claims for {track.use} calls, the process takes "
                f"{mine[len(mine) // 4] / 1e6:.3f} ms by the outside clock; {usual / 1e6:.3f} ms are usual"
            )
        return ""
