"""What this machine is: its model, its caches, its load; where its measured ceilings are kept."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any


@cache
def cpu_model() -> str:
    """Times of different models are never compared, so the name has to tell them apart."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    keys = ("model name", "Processor", "CPU part", "cpu family", "model", "stepping")
    found = {key: re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE) for key in keys}
    parts = [f"{'' if k in keys[:2] else k + ' '}{m[1].strip()}" for k, m in found.items() if m]
    return ", ".join(parts) or platform.machine()


def cache_folder(given: Path | None = None) -> Path:
    """The user's cache folder for this product; need not exist."""
    if given is not None:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ksearch"


@cache
def last_level_cache_bytes() -> int:
    """The largest cache that one core sees; 32 MiB where nobody says."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        if text[:-1].isdigit():
            sizes.append(int(text[:-1]) << (10 if text.endswith("K") else 20))
    return max(sizes, default=32 << 20)


def load() -> dict[str, Any]:
    """How busy the machine is, as recorded with each result."""
    running = total = 0
    try:
        running, total = map(int, Path("/proc/loadavg").read_text().split()[3].split("/"))
        one, five, fifteen = os.getloadavg()
    except OSError:
        one = five = fifteen = -1.0
    return {"load_1": one, "load_5": five, "load_15": fifteen, "running": running, "processes": total}


def clocks_mhz() -> list[float]:
    """Clock of each core now, where the system shows it. Clocks are recorded, never changed."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    return [float(m) for m in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]


def describe() -> dict[str, Any]:
    return {
        "cpu": cpu_model(), "cores": os.cpu_count(), "kernel": platform.release(),
        "architecture": platform.machine(), "python": sys.version.split()[0],
        "last_level_cache_bytes": last_level_cache_bytes(), "clocks_mhz": clocks_mhz(),
    }  # fmt: skip


def cores() -> tuple[tuple[int, ...], int]:
    """(cores that we may use, how many). The last ones are for timing, the first for everything else."""
    mine = tuple(sorted(os.sched_getaffinity(0)))
    return mine, len(mine)
