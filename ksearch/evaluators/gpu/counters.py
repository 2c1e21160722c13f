"""Hardware counters of one call by `ncu`, where that is permitted. For profiles: advice, no evidence.

`ncu` and the process that it starts talk over TCP, so they run in name spaces of their own, with nothing but a loopback
in the network's, without Landlock and the filter of system calls. That is a weaker fence than a runner's; so it is
used only where it was asked for, and not at all where there are no name spaces. Whether it works here is tried
once per machine, on the task's baseline, and kept for two weeks.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksearch.evaluators import leftovers, machine
from ksearch.evaluators.gpu.counted import ORDER, PROGRAM
from ksearch.evaluators.jailed import Jailed
from ksearch.evaluators.processes import Broken, Flooded, Overdue, python_paths

if TYPE_CHECKING:
    from ksearch.evaluators.bench import Bench
    from ksearch.evaluators.jail import JailSpec

METRICS = {
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
_TIME = "gpu__time_duration.sum"
LIMIT_S = 120.0
MAX_AGE_S = 14 * 86400.0
_LAUNCHES = 32  # counted at most; each is run several times
_REPORT = "counters.csv"
_SPACES = {"mount_ns", "pid_ns", "net_ns", "no_new_privs"}
_CODE = "import sys; sys.path[:0] = {paths!r}; from ksearch.evaluators.gpu.counted import main; main({folder!r})"


class NoCounters(Exception):
    """They cannot be read here, or not of this program; the text says why."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program and the buffers for it: orders as a runner gets them."""

    load: Mapping[str, Any]
    map: Mapping[str, Any]
    data: bytes


def fenced(rungs: Iterable[str]) -> None:
    """See that a process here gets the name spaces that stand in for the rest of the fence: before any is started.

    Raises:
        NoCounters
    """
    if missing := sorted(_SPACES - set(rungs)):
        raise NoCounters(f"there are no name spaces to run ncu in ({', '.join(missing)})")


def command(tool: str, folder: str, environment: Mapping[str, str]) -> list[str]:
    """`env` passes on what the jail strips and CUDA needs."""
    passed = [f"{name}={value}" for name, value in environment.items()]
    code = _CODE.format(paths=python_paths(), folder=folder)
    return [
        shutil.which("env") or "env", *passed, tool, "--clock-control", "none", "--profile-from-start", "off",
        "--launch-count", str(_LAUNCHES), "--csv", "--page", "raw", "--print-units", "base", "--log-file",
        f"{folder}/{_REPORT}", "--metrics", ",".join([*METRICS.values(), _TIME]),
        sys.executable, "-P", "-B", "-c", code,
    ]  # fmt: skip


def jail_of(bench: Bench, folder: str, tool: str) -> JailSpec:
    spec = bench.jail(folder=folder, build=True)
    above = str(Path(tool).resolve().parent)
    return replace(
        spec, device="cuda", threads=True, loopback=True, processes=512, visible=(*spec.visible, above),
        memory_bytes=spec.memory_bytes + 2 * bench.device.host_bytes, skip=(*spec.skip, "landlock", "seccomp"),
    )  # fmt: skip


def read(bench: Bench, job: Job, tool: str | None = None) -> dict[str, float]:
    """Percent of the peak, by name, of the kernel that took longest.

    Raises:
        NoCounters
    """
    tool = tool or shutil.which("ncu")
    if tool is None:
        raise NoCounters("ncu is not in PATH")
    with tempfile.TemporaryDirectory(prefix=leftovers.prefix("ksearch-count-")) as name:
        folder = Path(name).resolve()
        spec = jail_of(bench, str(folder), tool)
        (folder / ORDER).write_text(json.dumps({"load": dict(job.load), "map": dict(job.map)}))
        (folder / PROGRAM).write_bytes(job.data)
        for path in (folder, folder / ORDER, folder / PROGRAM):
            path.chmod(0o700 if path.is_dir() else 0o600)
            if spec.uid is not None:
                os.chown(path, spec.uid, spec.uid)
        printed = _run(bench, spec, command(tool, str(folder), bench.device.environment()))
        return parsed(_report(folder / _REPORT), printed)


def _run(bench: Bench, spec: JailSpec, argv: list[str]) -> str:
    process = Jailed(bench.template, spec, argv=argv)
    try:
        fenced(process.rungs)
        process.wait(LIMIT_S)
    except Overdue:
        raise NoCounters(f"ncu did not end within {LIMIT_S:g} s") from None
    except Flooded as flood:
        raise NoCounters(f"ncu {flood}") from None
    finally:
        process.close()
    return process.log


def _report(path: Path) -> str:
    """Read without following a link; empty where there is none."""
    with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace")
    return ""


def parsed(report: str, printed: str = "") -> dict[str, float]:
    """The counters of the longest kernel in a report of `ncu --csv --page raw`.

    Raises:
        NoCounters: there is none in it; with ncu's own words where it had any.
    """
    lines = [line for line in report.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if _number(row.get(_TIME)) is not None]
    if not rows:
        raise NoCounters(_complaint((*report.splitlines(), *printed.splitlines())))
    longest = max(rows, key=lambda row: _number(row[_TIME]) or 0.0)
    found = {name: _number(longest.get(metric)) for name, metric in METRICS.items()}
    return {name: min(value, 100.0) for name, value in found.items() if value is not None and value >= 0}


def _number(text: object) -> float | None:
    with suppress(ValueError, TypeError):
        value = float(str(text).replace(",", ""))
        return value if math.isfinite(value) else None
    return None


def _complaint(lines: Iterable[str]) -> str:
    errors = [line.strip("= ") for line in lines if line.startswith("==ERROR==") or "Error:" in line]
    return errors[-1][:200] if errors else "ncu wrote no counters"


# --- once per machine ----------------------------------------------------------------------------------------------


def permitted(bench: Bench, baseline: Job) -> None:
    """Try once per machine whether they can be read.

    Raises:
        NoCounters
    """
    about = bench.device.state()
    path = machine.cache_folder(bench.options.cache) / f"counters-{about.get('uuid', 'gpu')}.json"
    known = _known(path, str(about.get("driver", "")))
    if known is None:
        known = _tried(bench, baseline)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"why": known, "driver": about.get("driver", ""), "at": time.time()}))
    if known:
        raise NoCounters(known)


def _known(path: Path, driver: str) -> str | None:
    """Why not, "" where they can be read, None where nobody has tried lately."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads(path.read_text())
        if data["driver"] == driver and 0 <= time.time() - data["at"] < MAX_AGE_S:
            return str(data["why"])
    return None


def _tried(bench: Bench, baseline: Job) -> str:
    try:
        read(bench, baseline)
    except (NoCounters, Broken, OSError) as error:
        return str(error) or type(error).__name__
    return ""
