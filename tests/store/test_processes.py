"""Several processes on one store, and writers killed at any moment."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksearch.store import Store, open_store

WRITERS = str(Path(__file__).with_name("writers.py"))
POSTGRES_URL = os.environ.get("KSEARCH_TEST_POSTGRES_URL", "")


@pytest.fixture(params=["sqlite", "postgres"] if POSTGRES_URL else ["sqlite"])  # test_contract.py says so
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return POSTGRES_URL if request.param == "postgres" else str(tmp_path / "ksearch.db")


@pytest.fixture
def run_id() -> str:
    return f"run-{uuid.uuid4().hex}"


@pytest.fixture
def store(place: str, run_id: str) -> Iterator[Store]:
    with open_store(place) as store:
        store.create_run(run_id, {})
        yield store


def start(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, WRITERS, *args], stdout=subprocess.PIPE, text=True)


def test_racing_processes_lose_nothing_and_double_nothing(store: Store, place: str, run_id: str) -> None:
    writers = [start("many", place, run_id, str(name), "50") for name in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 4
    events = list(store.read(run_id))  # checks the chain
    assert len(events) == 200
    assert set(Counter((event.body["by"], event.body["n"]) for event in events).values()) == {1}
    for name in range(4):  # each writer's own events are in its order
        assert [e.body["n"] for e in events if e.body["by"] == str(name)] == list(range(50))


def test_processes_opening_a_new_store_at_once_all_succeed(tmp_path: Path) -> None:
    code = "import sys; from ksearch.store import open_store; open_store(sys.argv[1]).put_blob(sys.argv[2].encode())"
    args = [sys.executable, "-c", code, str(tmp_path / "new" / "ksearch.db")]
    openers = [subprocess.Popen([*args, str(n)]) for n in range(6)]
    assert [opener.wait(timeout=120) for opener in openers] == [0] * 6


def test_killed_writer_loses_nothing_that_was_acknowledged(store: Store, place: str, run_id: str) -> None:
    rng = random.Random(7)
    for _ in range(6):
        writer = start("forever", place, run_id)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline())]
        time.sleep(rng.random() * 0.2)
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
        writer.wait()
        writer.stdout.close()
        with open_store(place) as reopened:
            events = list(reopened.read(run_id))
            # One more than acknowledged may be there: stored, and killed before it could say so.
            assert 0 <= len(events) - acknowledged[-1] <= 1
            for event in events[-3:]:
                assert reopened.get_blob(event.body["raw"]).startswith(f"{run_id} {event.seq}{run_id}".encode())


def test_viewer_reads_whole_logs_while_a_writer_writes(store: Store, place: str, run_id: str) -> None:
    writer = start("forever", place, run_id)
    assert writer.stdout is not None
    writer.stdout.readline()
    lengths = []
    with open_store(place, readonly=True) as viewer:
        for _ in range(20):
            lengths.append(sum(1 for _ in viewer.read(run_id)))
            time.sleep(0.01)
    writer.kill()
    writer.communicate()
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0] > 0


def test_slow_reader_holds_no_transaction_between_pages(store: Store, place: str, run_id: str) -> None:
    store.append(run_id, 0, [{"n": n} for n in range(1500)])
    reading = store.read(run_id)
    next(reading)
    with open_store(place) as writer:
        assert writer.append(run_id, 1500, [{"late": True}]) == 1501
    assert sum(1 for _ in reading) == 1499  # what was there when the reading began


@pytest.mark.skipif(not POSTGRES_URL, reason="no PostgreSQL")
@pytest.mark.parametrize("place", [POSTGRES_URL])
def test_connection_cut_by_the_server_is_made_again(store: Store, place: str, run_id: str) -> None:
    with store._engine.connect() as conn:
        mine = conn.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    with open_store(place) as other, other._engine.connect() as conn:
        conn.exec_driver_sql(f"SELECT pg_terminate_backend({mine})")
    assert store.append(run_id, 0, [{}]) == 1


def test_forked_child_uses_connections_of_its_own(store: Store, place: str, run_id: str) -> None:
    store.append(run_id, 0, [{"by": "parent"}])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if store.append(run_id, 1, [{"by": "child"}]) == 2 else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.append(run_id, 2, [{"by": "parent"}]) == 3
    assert [event.body["by"] for event in store.read(run_id)] == ["parent", "child", "parent"]
