"""What holds a GPU program up, in a sentence or two: from what a profile saw, times, and floors. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ksearch.types import Kernel, Profile

NEAR = 0.6  # of a measured ceiling: what is this near to it is bound by it
BUSY_PERCENT = 60.0  # of the peak, by the hardware's counters
IDLE = 0.25  # of the time that a call takes, the GPU has nothing to do
MANY = 4  # launches: intermediates make their way through memory
MOST_KERNELS = 12


@dataclass(frozen=True, slots=True)
class Seen:
    """What the profiler in the program's process said of one call. Times in ms."""

    kernels: tuple[Kernel, ...]  # the longest first
    launches: int
    busy_ms: float  # at least one kernel at work
    span_ms: float  # from the first kernel's start to the last one's end


@dataclass(frozen=True, slots=True)
class Measured:
    """What the evaluator itself knows of the workload. Times in ms; `memory_ms`, `arithmetic_ms`: the least time at
    the measured ceilings; 0 where the task states none."""

    workload: str
    latency_ms: float
    memory_ms: float
    arithmetic_ms: float
    end_to_end: bool  # found to be bound by launching: its time is that of the outside clock


def seen_from(data: Mapping[str, object]) -> Seen:
    """From a runner's answer, which may hold anything.

    Raises:
        ValueError: it is not of the form wanted.
    """
    rows = data.get("kernels")
    numbers = [data.get(name) for name in ("launches", "busy_us", "span_us")]
    if not isinstance(rows, list) or len(rows) > 64 or not all(map(_amount, numbers)):
        raise ValueError("not a profile")
    kernels = []
    for row in rows:
        if not (isinstance(row, list) and len(row) == 3 and isinstance(row[0], str) and _amount(row[1])):
            raise ValueError("not a kernel of a profile")
        if not _amount(row[2]):
            raise ValueError("not a kernel's time")
        kernels.append(Kernel(row[0][:160], int(row[1]), float(row[2]) / 1e3))
    launches, busy, span = (float(n) for n in numbers if isinstance(n, int | float))
    ordered = sorted(kernels, key=lambda k: -k.ms)
    return Seen(tuple(ordered[:MOST_KERNELS]), int(launches), busy / 1e3, span / 1e3)


def _amount(value: object) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value) and 0 <= value < 1e15  # type: ignore[arg-type,operator]


def profile_of(seen: Seen, found: Measured, counters: Mapping[str, float] | None = None) -> Profile:
    """The profile that is kept with an evaluation."""
    counters = counters or {}
    if not seen.kernels:
        return Profile(found.workload, "", "no profile: the profiler saw no kernel")
    bound, why = _bound(seen, found, counters)
    return Profile(found.workload, bound, f"{why} {_made_of(seen)}", seen.kernels, dict(counters))


def _bound(seen: Seen, found: Measured, counters: Mapping[str, float]) -> tuple[str, str]:
    idle = max(0.0, 1 - seen.busy_ms / found.latency_ms) if found.latency_ms > 0 else 0.0
    if found.end_to_end or idle > IDLE:
        return "launch", (
            f"{idle:.0%} of a call the GPU waits for the host or for launches: fewer and larger kernels, no "
            "synchronisation, no allocation between them."
        )
    shares = {"memory": found.memory_ms / found.latency_ms, "compute": found.arithmetic_ms / found.latency_ms}
    name = max(shares, key=lambda k: shares[k])
    if shares[name] >= NEAR:
        what = "bytes" if name == "memory" else "operations"
        return name, f"the compulsory {what} alone take {shares[name]:.0%} of the time at the measured ceiling."
    if counters:
        return _by_counters(counters, shares)
    known = f"at the measured ceilings the compulsory bytes take {shares['memory']:.0%} of the time, the operations "
    known += f"{shares['compute']:.0%}"
    return "latency", (
        f"{known if any(shares.values()) else 'the task states no compulsory work'}; the rest is latency, extra "
        "traffic or slow instructions, which times alone do not tell apart."
    )


def _by_counters(counters: Mapping[str, float], shares: Mapping[str, float]) -> tuple[str, str]:
    dram, l2, sm, occupancy = (counters.get(name, 0.0) for name in ("dram", "l2", "sm", "occupancy"))
    if dram >= BUSY_PERCENT and dram >= sm:
        return "memory", (
            f"DRAM is {dram:.0f}% busy in the longest kernel, but compulsory bytes explain {shares['memory']:.0%} of "
            "the time: data is read or written more than once."
        )
    if sm >= BUSY_PERCENT:
        return "compute", f"the multiprocessors' busiest pipe is {sm:.0f}% busy in the longest kernel."
    return "latency", (
        f"nothing is busy in the longest kernel (DRAM {dram:.0f}%, L2 {l2:.0f}%, multiprocessors {sm:.0f}%, occupancy "
        f"{occupancy:.0f}%): more loads in flight, deeper pipelines, more or larger tiles at once."
    )


def _made_of(seen: Seen) -> str:
    """3 launches, 0.52 ms busy; the longest has 71% of it."""
    launches = f"{seen.launches} launch{'' if seen.launches == 1 else 'es'}"
    top = seen.kernels[0].ms / seen.busy_ms if seen.busy_ms > 0 else 0.0
    many = "; each hands its result on through memory" if seen.launches >= MANY else ""
    share = f", the longest kernel {min(top, 1.0):.0%} of it" if len(seen.kernels) > 1 else ""
    return f"{launches} a call, {seen.busy_ms:.3g} ms busy{share}{many}."


def chosen(times: Mapping[str, tuple[float, float]], most: int = 2) -> Sequence[str]:
    """Which workloads to profile: the one furthest from its floor, and the one that takes longest.

    Args:
        times: (time, floor) of each; floor 0: unknown.
    """
    if not times:
        return ()
    longest = max(times, key=lambda n: times[n][0])
    floored = [n for n in times if times[n][1] > 0]
    furthest = max(floored, key=lambda n: times[n][0] / times[n][1], default=longest)
    return tuple(dict.fromkeys((furthest, longest)))[:most]
