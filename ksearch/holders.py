"""Who holds a lease, and whether that process still lives. Linux by /proc; elsewhere only the deadline tells."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ksearch.protocol import Holder

_OURS: set[Holder] = set()  # made in this process, or in the one it was forked from


def this_process(name: str) -> Holder:
    """A holder that another process of this machine can find dead."""
    holder = Holder(name, socket.gethostname(), _boot(), os.getpid(), _started(os.getpid()) or "")
    _OURS.add(holder)
    return holder


def is_dead(holder: Holder) -> bool:
    """True only when it is sure: the same host, and another boot or no such process any more."""
    if holder in _OURS and holder.pid == os.getpid():
        return False  # asked for each lease at each step
    if not holder.pid or holder.host != socket.gethostname():
        return False
    if holder.boot and _boot() and holder.boot != _boot():
        return True
    if not Path("/proc/self/stat").exists():
        return False
    return _started(holder.pid) != holder.started


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot: with the pid, it names one process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before may hold blanks and brackets
    return None if fields[0] in ("Z", "X") else fields[19]  # a zombie does no more work
