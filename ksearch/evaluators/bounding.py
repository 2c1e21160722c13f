"""Is what a runner reports borne out from outside? Gathers the turns that `outside` judges, and repeats in doubt.

Where a program can start neither threads nor processes, the outside clock is the kernel's count of its processor
time. Whatever it does is in there, and nothing else: not the time that it waited for a busy machine. In other
sandboxes the coordinator's own clock has to do, and on a busy machine what it shows may stay undecided.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

from ksearch.evaluators import machine, outside
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.gpu import endtoend
from ksearch.evaluators.processes import TooBusy
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Verdict

if TYPE_CHECKING:
    from ksearch.evaluators.timing import Timer
    from ksearch.evaluators.track import Track

TRIES, ROUNDS_IN_DOUBT = 5, 4
PAUSE_S = 0.3  # on a busy machine, more from try to try
QUEUE_S = 0.4
LEAST_TURNS, CALM = 4, 4
WAITING, WAITING_NS = 0.25, 500_000  # a machine is busy where the baseline waits for longer than this
GROSS = 0.15  # hidden share of the claimed time that no busy machine explains


def bound(timer: Timer, total_ms: float, most: int) -> list[str]:
    """Look at every workload; the answer holds what stayed undecided, in words.

    Raises:
        Failed: FORGED. Noise only ever adds time outside, so a suspicion is looked at again and again: an
            honest program meets a quiet moment, a forger never does.
        TooBusy: no quiet moment came, and the clock at hand cannot tell work from waiting.
    """
    if not timer.bench.options.on(Defence.OUTSIDE_CLOCK):
        return []
    found = [_look(timer, track, total_ms, most) for track in timer.tracks.values()]
    return [text for text in found if text]


def _look(timer: Timer, track: Track, total_ms: float, most: int) -> str:
    for tries in range(TRIES):
        if timer.exact:
            while len(track.samples[timer.candidate.key]) < LEAST_TURNS:
                timer.round(track, count=True)
        else:
            _queue(timer, track, total_ms, most)
        reason = outside.doubt(claims(timer, track), track.batches)
        if not reason:
            return ""
        if busy(timer, track):
            time.sleep(PAUSE_S * tries)
        for _ in range(ROUNDS_IN_DOUBT):
            timer.round(track, count=True)
    if timer.bench.spec.device == "cuda":
        if reason := endtoend.settle(timer, track, reason):
            raise Failed(Verdict.FORGED, reason, workload=track.workload.name)
        return ""
    return _undecided(timer, track, reason)


def _undecided(timer: Timer, track: Track, reason: str) -> str:
    """The doubt stood through all tries: in words what a busy machine may explain, else it is raised."""
    if busy(timer, track):
        if timer.exact and outside.hidden_share(claims(timer, track)) < GROSS:
            return f"{track.workload.name}: the machine is too busy to bound the times tightly ({reason})"
        if not timer.exact:
            raise TooBusy(f"the machine is too busy to tell whether its times are true: {reason}")
    raise Failed(Verdict.FORGED, reason, workload=track.workload.name)


def busy(timer: Timer, track: Track) -> bool:
    """Do others keep what is timed from computing?"""
    if timer.exact:
        base = timer.baseline.key
        computing = statistics.median(track.outside[base] or [0])
        return statistics.median(track.waited[base] or [0]) > WAITING * computing + WAITING_NS
    return int(machine.load()["running"]) > (os.cpu_count() or 1)


Turns = tuple[list[list[int]], list[int]]  # reported nanoseconds per call, and those seen from outside


def claims(timer: Timer, track: Track) -> outside.Claims:
    """What the candidate says of this workload, beside what is known to be true."""
    mine, bench, exact = timer.candidate.key, timer.bench, timer.exact
    cuda, names = bench.spec.device == "cuda", bench.spec.names(track.workload.axes)
    reported, seen = _calm(track, mine, CALM, 0.5) if exact else (track.samples[mine], track.outside[mine])
    usual, usual_seen = _usual(timer, track)
    return outside.Claims(
        calls=track.use, queued_calls=track.sets,
        python=not cuda and timer.candidate.program.language == "python",
        call_slack_ns=bench.device.call_slack_ns, launch_slack_ns=bench.device.launch_slack_ns,
        output_bytes=sum(t.size_bytes(names) for t in bench.spec.outputs),
        reported=reported, seen=seen, quick_ns=track.quick_ns(mine), exact=exact,
        baseline_reported=usual, baseline_seen=usual_seen,
        baseline_quick_ns=math.inf if cuda else track.quick_ns(timer.baseline.key),
    )  # fmt: skip


def _usual(timer: Timer, track: Track) -> Turns:
    """Turns that show what passes beside the calls of an honest program.

    In processor time, turns of the baseline without any call show it: of long calls that were interrupted, nobody
    knows how much of what they report was waiting. They do not depend on the workload.
    """
    key = (timer.control or timer.baseline).key
    if not timer.exact:
        return track.samples[key], track.outside[key]
    if timer.control is not None:
        return _calm(track, key, CALM, 0.5)
    empty = [seen for one in timer.tracks.values() for seen in one.empty]
    return [[] for _ in empty], empty


def _calm(track: Track, key: str, least: int, share: float) -> Turns:
    chosen = track.calm(key, least, share)
    return [track.samples[key][n] for n in chosen], [track.outside[key][n] for n in chosen]


def _queue(timer: Timer, track: Track, total_ms: float, most: int) -> None:
    """Calls on distinct inputs, one after the other in one order, not flushed between."""
    sets = list(range(track.sets))
    per_order_ms = track.median_ms(timer.candidate.key) * track.sets
    start, limit_s = time.monotonic(), QUEUE_S
    if timer.bench.spec.device == "cuda":  # large inputs take their time, so all workloads share it
        limit_s = 4 * QUEUE_S / len(timer.tracks)
    for done in range(max(2, min(most, math.ceil(total_ms / max(per_order_ms, 1e-3))))):
        if done >= 2 and time.monotonic() - start > limit_s:
            break  # very short calls: drawing their values takes far longer than the calls
        timer.fill(track, sets)
        track.turns += 1
        base, base_seen = timer.turn(track, timer.baseline, sets, flush=False, queued=True)
        mine, mine_seen = timer.turn(track, timer.candidate, sets, flush=False, queued=True)
        timer.judge(track, sets)
        batch: dict[str, Any] = {
            "calls": len(sets), "outside_ns": mine_seen, "reported_ns": sum(mine),
            "baseline_outside_ns": base_seen, "baseline_reported_ns": sum(base),
        }  # fmt: skip
        if timer.control is not None:
            null, null_seen = timer.turn(track, timer.control, sets, flush=False, queued=True)
            batch |= {"control_outside_ns": null_seen, "control_reported_ns": sum(null)}
        track.batches.append(batch)
