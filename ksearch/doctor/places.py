"""Memory, disks, and the folders that have to be writable."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ksearch.conditions import disturbances, read_conditions, usable_cores
from ksearch.doctor.report import Line, fail, ok, warn
from ksearch.errors import StoreError
from ksearch.evaluators import machine
from ksearch.evaluators.lease import default_path, timing_lease
from ksearch.hardware import read_hardware

GIB = 1 << 30
LITTLE_DISK, TOO_LITTLE_DISK = GIB, 100 << 20
LITTLE_MEMORY, TOO_LITTLE_MEMORY = 2 * GIB, GIB // 2


def cores() -> Iterator[Line]:
    count, found = usable_cores(), read_conditions()
    what = f"{count} usable of {os.cpu_count()}: {machine.cpu_model()}"
    if count < 2:
        yield warn("cores", what, "With two or more, the timed program has a core of its own")
    else:
        yield ok("cores", what)
    shown = [f"governor {found.governor}"] if found.governor else ["the system shows no governor"]
    shown += [f"clocks {min(found.clocks_mhz):.0f} to {max(found.clocks_mhz):.0f} MHz"] if found.clocks_mhz else []
    shown += [f"boost {found.boost}"] if found.boost else []
    shown += [f"load {found.load_1:.2f}"] if found.load_1 is not None else []
    shown += [f"{found.temperature_c:.0f} degrees C"] if found.temperature_c is not None else []
    yield ok("clock", ", ".join(shown))
    for line in disturbances(found, count):
        detail, _, cure = line.partition(": ")
        yield warn("quiet", detail, cure)


def caches() -> Line:
    found = [f"L{c.level} {c.kind.lower()} {c.bytes >> 10} KiB" for c in read_hardware().caches]
    if not found:
        flushed = machine.last_level_cache_bytes() >> 20
        where = "/sys/devices/system/cpu/cpu0/cache"
        return warn(
            "caches", f"{where} shows none: {flushed} MiB are flushed between calls", "Nothing to do, if enough"
        )
    return ok("caches", ", ".join(found))


def memory() -> Line:
    path = Path("/proc/meminfo")
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB", path.read_text(), re.MULTILINE)
    except OSError as error:
        return warn("memory", f"{path}: {error.strerror}", "Make sure that some gigabytes are free")
    free = int(match[1]) << 10 if match else 0
    what = f"{free / GIB:.1f} GiB available"
    if free < TOO_LITTLE_MEMORY:
        return fail("memory", what, "End other programs: a runner with its buffers needs half a gigabyte")
    if free < LITTLE_MEMORY:
        return warn("memory", what, "Large workloads may not fit: end other programs")
    return ok("memory", what)


def temporary() -> Line:
    return _place("temporary folder", Path(tempfile.gettempdir()), needed=True, variable="TMPDIR")


def cache() -> Line:
    return _place("cache folder", machine.cache_folder(), needed=False, variable="XDG_CACHE_HOME")


def _place(name: str, path: Path, *, needed: bool, variable: str) -> Line:
    """Can a file be made there, or where the folder would be made? How much room is left?"""
    there = _existing(path)
    elsewhere = f"Name a folder that you may write to with {variable}"
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
            file.flush()
        free = shutil.disk_usage(there).free
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}"
        return (
            fail(name, text, elsewhere) if needed else warn(name, f"{text}; baselines are built each time", elsewhere)
        )
    what = f"{path}, {free / GIB:.1f} GiB free"
    if free < TOO_LITTLE_DISK and needed:
        return fail(name, what, f"Make room, or: {elsewhere}")
    return ok(name, what) if free >= LITTLE_DISK else warn(name, what, f"Make room, or: {elsewhere}")


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def lease() -> Line:
    """The lock that keeps two searches from timing at once. Held by a search at work: not waited for."""
    from ksearch.errors import EvaluatorError

    path = default_path()
    try:
        with timing_lease(timeout_s=0.2):
            return ok("timing lock", str(path))
    except EvaluatorError as error:
        if "held by" in str(error):
            return warn("timing lock", f"{path} is held: something is timed now", "Evaluations wait for it")
        return fail("timing lock", str(error), f"Remove {path}, or make it writable for all")


def store(place: str) -> Line:
    """Can runs be kept at `place`, a path or URL? Nothing is made there."""
    cure = "Say where with --store PATH, or KSEARCH_STORE"
    if "://" in place:
        return _store_by_url(place, cure)
    path = Path(place).expanduser()
    there = path.parent if path.exists() else _existing(path)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        text = f"{path} cannot be kept in {there}: {error.strerror}"
        return fail("store", text, cure, needed=False)
    if not path.exists():
        return ok("store", f"{path}, to be made at the first run")
    if not os.access(path, os.R_OK | os.W_OK):
        return fail("store", f"{path} is not writable", cure, needed=False)
    return _opened(str(path), str(path), cure)


def _store_by_url(place: str, cure: str) -> Line:
    hidden = re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", place)
    return _opened(place, hidden, cure)


def _opened(place: str, shown: str, cure: str) -> Line:
    from ksearch.store import open_store

    try:
        with open_store(place, readonly=True) as found:
            runs = len(found.runs())
            notes = "; ".join(found.notes)
    except StoreError as error:
        return fail("store", str(error), cure, needed=False)
    what = f"{shown}, {runs} runs"
    return warn("store", f"{what}: {notes}", cure) if notes else ok("store", what)
