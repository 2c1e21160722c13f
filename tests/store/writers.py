"""What the store's tests run in processes of their own."""

from __future__ import annotations

import sys

from ksearch.store import blob_name, open_store
from ksearch.testing.store_contract import append_anyhow


def append_many(place: str, run_id: str, name: str, count: int) -> None:
    """Append `count` events beside other writers."""
    with open_store(place) as store:
        for n in range(count):
            append_anyhow(store, run_id, {"by": name, "n": n})


def append_until_killed(place: str, run_id: str) -> None:
    """Append an event and its blob for ever, printing each seq once it is acknowledged."""
    with open_store(place) as store:
        seq = store.run(run_id).seq
        while True:
            data = f"{run_id} {seq + 1}".encode() * 50
            seq = store.append(run_id, seq, [{"n": seq + 1, "raw": blob_name(data)}], blobs=[data])
            sys.stdout.write(f"{seq}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "many":
        append_many(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        append_until_killed(sys.argv[2], sys.argv[3])
