"""Under which conditions something is timed: clocks, governor, load, temperature. Read, never changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Conditions:
    """One look at the machine. Empty where it does not show something; many virtual machines show little."""

    governor: str = ""  # of the cores that differ, all of them: "performance, powersave"
    clocks_mhz: tuple[float, ...] = ()  # of each core now
    load_1: float | None = None  # mean number of processes that ran or wanted to, over one minute
    load_5: float | None = None
    temperature_c: float | None = None  # of the hottest zone
    boost: str = ""  # "on", "off"


def read_conditions(root: Path = Path("/")) -> Conditions:
    """What /proc and /sys say now.

    Args:
        root: another root folder, to read a copy of another machine's files.
    """
    cores = root / "sys/devices/system/cpu"
    governors = sorted({g for path in cores.glob("cpu[0-9]*/cpufreq/scaling_governor") if (g := _text(path))})
    clocks = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", _text(root / "proc/cpuinfo"), re.MULTILINE)
    load = _text(root / "proc/loadavg").split()
    return Conditions(
        governor=", ".join(governors),
        clocks_mhz=tuple(float(c) for c in clocks),
        load_1=float(load[0]) if load else None,
        load_5=float(load[1]) if load else None,
        temperature_c=max(_temperatures(root), default=None),
        boost=_boost(cores),
    )


def disturbances(now: Conditions, cores: int) -> list[str]:
    """What speaks against timing anything now, one line each with its cure."""
    found = []
    if now.governor and now.governor != "performance":
        found.append(
            f"the clock governor is {now.governor}: `cpupower frequency-set -g performance` steadies the clock"
        )
    if now.load_1 is not None and now.load_1 > max(1.0, cores / 2):
        found.append(f"load {now.load_1:.1f} on {cores} cores: other work disturbs the timing; let it end")
    if now.temperature_c is not None and now.temperature_c > 85:
        found.append(f"{now.temperature_c:.0f} degrees C: the clock may be throttled; let the machine cool down")
    return found


def usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _temperatures(root: Path) -> Iterator[float]:
    for path in (root / "sys/class/thermal").glob("thermal_zone*/temp"):
        text = _text(path)
        if re.fullmatch(r"-?\d+", text) and 0 < int(text) < 150_000:
            yield int(text) / 1000


def _boost(cores: Path) -> str:
    if text := _text(cores / "cpufreq/boost"):
        return "on" if text == "1" else "off"
    if text := _text(cores / "intel_pstate/no_turbo"):
        return "off" if text == "1" else "on"
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
