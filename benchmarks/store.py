"""Speed of the store: medians on this machine, for the disk that holds the current folder.

python benchmarks/store.py [STORE_URL]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

from ksearch.store import Store, blob_name, open_store

APPENDS = 500
EVENTS = 50_000
BODY = {"type": "program_written", "version": 1, "node": "n12", "program": "0" * 64, "note": "x" * 250}


def measure_appends(store: Store, run_id: str, blob_bytes: int) -> list[float]:
    """Return the times (ms) of durable appends of one event, with a blob of that size (0: none)."""
    times = []
    seq = store.run(run_id).seq
    for n in range(APPENDS):
        blobs = [f"{run_id}{n}".encode().ljust(blob_bytes, b"x")] if blob_bytes else []
        body = {**BODY, "n": n, "raw": [blob_name(blob) for blob in blobs]}
        start = time.perf_counter()
        seq = store.append(run_id, seq, [body], blobs)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measure_reading(store: Store, run_id: str) -> list[float]:
    """Return the times (s) of reading `EVENTS` events, decoded and with their chain checked."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        count = sum(1 for _ in store.read(run_id))
        times.append(time.perf_counter() - start)
        assert count == EVENTS
    return times


def report(what: str, times: list[float], unit: str) -> None:
    """Print the median and the 99th percentile."""
    high = statistics.quantiles(times, n=100)[98] if len(times) > 9 else max(times)
    print(f"{what:<52} median {statistics.median(times):7.3f} {unit}   p99 {high:7.3f} {unit}")


def main() -> None:
    """Measure the store named on the command line, or a new SQLite file in the current folder."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        place = sys.argv[1] if len(sys.argv) > 1 else f"{folder}/bench.db"
        with open_store(place) as store:
            print(*store.notes, sep="\n", end="")
            name = uuid.uuid4().hex
            for kind, size in (("no blob", 0), ("a 4 kB blob", 4_000), ("a 100 kB blob", 100_000)):
                run_id = f"append-{size}-{name}"
                store.create_run(run_id, {})
                report(f"durable append of one event and {kind}", measure_appends(store, run_id, size), "ms")
            run_id = f"read-{name}"
            store.create_run(run_id, {})
            store.append(run_id, 0, [{**BODY, "n": n} for n in range(EVENTS)])
            report(f"reading {EVENTS:,} events, chain checked", measure_reading(store, run_id), "s")


if __name__ == "__main__":
    main()
