"""Programs that are bound by launching: their GPU time is short, but nobody gets it without waiting for the CPU.

By the outside clock their queued calls take longer than the GPU time that they claim, which is also how a forged
time looks. Two steps tell them apart and take the profit out of forging. First, the calls are queued behind a gate,
and the coordinator's clock starts when it opens: an honest program needs no longer than it claims. Second, whatever
passes that is scored by the outside clock alone, and so is everything timed beside it on this workload.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

from ksearch.evaluators.defences import Defence

if TYPE_CHECKING:
    from ksearch.evaluators.subject import Subject
    from ksearch.evaluators.timing import Timer
    from ksearch.evaluators.track import Track

TRIES = 4
SLACK_NS = 50_000  # waking processes
MOST_LAUNCHES = 24  # calls queued at once: a stream takes about a thousand launches before it makes its process wait
WAIT_S = 5.0


def settle(timer: Timer, track: Track, reason: str) -> str:
    """Look into a doubt about `track`: the reason if it stands, else "", and the track holds end-to-end times."""
    sets = list(range(track.sets))[:MOST_LAUNCHES]
    claimed = track.quick_ns(timer.candidate.key) * len(sets)
    timer.fill(track, sets)
    messages = min(_released_ns(timer, track, timer.baseline, []) for _ in range(TRIES))
    allowed = 1.05 * claimed + messages + SLACK_NS + len(sets) * timer.bench.device.call_slack_ns
    took = []
    for _ in range(TRIES):
        timer.fill(track, sets)
        took.append(_released_ns(timer, track, timer.candidate, sets))
        if took[-1] <= allowed:
            _measure(timer, track)
            return ""
    return (
        f"{reason}; queued behind a gate, {len(sets)} calls took {min(took) / 1e6:.3f} ms from its opening, "
        f"{allowed / 1e6:.3f} ms would do"
    )


def _released_ns(timer: Timer, track: Track, subject: Subject, sets: list[int]) -> int:
    """From opening the gate until all calls queued behind it are done, by our clock."""
    key = f"{track.workload.name}/t"
    subject.process.resume()
    subject.ask({"do": "queue", "key": key, "sets": sets}, (), WAIT_S)
    start = time.perf_counter_ns()
    subject.ask({"do": "release", "key": key}, (), WAIT_S)
    took = time.perf_counter_ns() - start
    subject.ask({"do": "collect", "exact": False}, (), WAIT_S)
    if timer.bench.options.on(Defence.STOP_OFF_TURN):
        subject.process.stop()
    return took


def _measure(timer: Timer, track: Track) -> None:
    """Queued turns of everybody in place of what was sampled before; what an empty turn takes is taken off."""
    empty = statistics.median(timer.turn(track, timer.baseline, [], flush=False)[1] for _ in range(5))
    sets = list(range(track.sets))
    track.end_to_end = True
    for key in track.samples:
        track.samples[key] = []
    for key in track.logs:
        track.logs[key] = []
    for turn in range(timer.bench.options.min_rounds):
        timer.fill(track, sets)
        each: dict[str, float] = {}
        for subject in timer.subjects if turn % 2 else timer.subjects[::-1]:
            _, seen = timer.turn(track, subject, sets, flush=False, queued=True)
            each[subject.key] = max((seen - empty) / len(sets), 1.0)
            track.samples[subject.key].append([round(each[subject.key])])
        timer.judge(track, sets)
        for other in timer.others:
            track.logs[other.key].append(math.log(each[other.key] / each[timer.candidate.key]))
