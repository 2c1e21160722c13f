"""One call of a program under torch's profiler, in a runner of its own, after everything that counts is over.

What is said here is said by the program's own process: it may tell whatever it likes, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Thunk = Callable[[], object]
MOST = 40  # kernels named; the rest is summed up
NAME_CHARS = 160
Event = tuple[str, float, float]  # name, start, end in microseconds


def seen(calls: Iterable[tuple[int, Thunk]], settle: Callable[[], None], flush: Callable[[], None]) -> dict[str, Any]:
    """All calls but the last are to warm up; the last one is looked at, with cold caches, as timed calls are.

    Args:
        settle: waits for the whole device.
    """
    from torch.profiler import ProfilerActivity, profile

    *before, (_, last) = list(calls)
    for _, call in before:
        call()
        settle()
    with profile(activities=[ProfilerActivity.CUDA]):  # the first use of a process takes long to start
        settle()
    flush()
    settle()
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        kept = last()  # noqa: F841  # its memory lives until the device is idle
        settle()
    return summed([_event(e) for e in record.events() if _on_gpu(e)])


def _on_gpu(event: Any) -> bool:
    from torch.autograd import DeviceType

    return bool(event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False))


def _event(event: Any) -> Event:
    return str(event.name), float(event.time_range.start), float(event.time_range.end)


def summed(events: Sequence[Event]) -> dict[str, Any]:
    """Kernels by name, the longest first; time in which at least one was at work; time from first to last."""
    total: dict[str, tuple[int, float]] = {}
    busy, until = 0.0, float("-inf")
    for name, start, end in sorted(events, key=lambda e: e[1]):
        launches, us = total.get(name, (0, 0.0))
        total[name] = launches + 1, us + end - start
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    rows: list[list[Any]] = [
        [name[:NAME_CHARS], n, us] for name, (n, us) in sorted(total.items(), key=lambda item: -item[1][1])
    ]
    if len(rows) > MOST:
        rest = rows[MOST - 1 :]
        rows[MOST - 1 :] = [[f"{len(rest)} others", sum(r[1] for r in rest), sum(r[2] for r in rest)]]
    span = until - min(e[1] for e in events) if events else 0.0
    return {"kernels": rows, "launches": len(events), "busy_us": busy, "span_us": span}
