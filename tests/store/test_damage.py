"""What was changed, lost or cut is found on reading, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksearch.errors import Corrupt, StoreError
from ksearch.store import Store, blob_name, open_store

Change = Callable[..., None]
EVENTS = 6


@pytest.fixture
def run(store: Store) -> Store:
    store.create_run("r", {"task": "softmax"})
    store.append("r", 0, [{"n": n, "text": f"event {n}"} for n in range(1, EVENTS + 1)], blobs=[b"source"])
    return store


def read(store: Store) -> tuple[list[int], str]:
    """Return the seqs that were read, and the error that ended it ('' if none)."""
    seqs: list[int] = []
    try:
        seqs.extend(event.seq for event in store.read("r"))
    except Corrupt as err:
        return seqs, str(err)
    return seqs, ""


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("UPDATE ksearch_events SET body = replace(body, 'event 3', 'event 9') WHERE seq = 3", 3),
        ("UPDATE ksearch_events SET body = '{}' WHERE seq = 1", 1),
        ("UPDATE ksearch_events SET body = 'not json' WHERE seq = 6", 6),
        ("UPDATE ksearch_events SET body = CAST(x'7b22ff7d' AS TEXT) WHERE seq = 2", 2),
        ("UPDATE ksearch_events SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE seq = 4", 4),
        ("DELETE FROM ksearch_events WHERE seq = 3", 3),
        ("DELETE FROM ksearch_events WHERE seq = 1", 1),
        ("DELETE FROM ksearch_events WHERE seq = 6", 6),
        ("UPDATE ksearch_events SET seq = 60 WHERE seq = 6", 6),
    ],
)
def test_damaged_event_is_named_and_those_before_it_are_read(
    run: Store, path: Path, change: Change, statement: str, seq: int
) -> None:
    change(statement)
    seqs, error = read(run)
    assert seqs == list(range(1, seq))
    assert f"{path}, run r: event {seq} is damaged" in error
    assert "Bring the store back from a backup" in error


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seq=st.integers(1, EVENTS),
    at=st.integers(0, 10_000),
    bit=st.integers(0, 7),
    column=st.sampled_from(["body", "hash"]),
)
def test_any_flipped_bit_is_found(
    run: Store, path: Path, change: Change, seq: int, at: int, bit: int, column: str
) -> None:
    event = list(run.read("r"))[seq - 1]
    text = event.hash if column == "hash" else f'{{"n":{seq},"text":"event {seq}"}}'
    data = bytearray(text.encode())
    data[at % len(data)] ^= 1 << bit
    update = f"UPDATE ksearch_events SET {column} = CAST(? AS TEXT) WHERE seq = ?"
    change(update, bytes(data), seq)
    try:
        seqs, error = read(run)
        assert (seqs, f"event {seq} is damaged" in error) == (list(range(1, seq)), True)
    finally:
        change(update, text.encode(), seq)
    assert read(run) == (list(range(1, EVENTS + 1)), "")


def test_changed_meta_is_found(run: Store, path: Path, change: Change) -> None:
    change('UPDATE ksearch_runs SET meta = \'{"task":"matmul"}\'')
    for use in (run.runs, lambda: run.run("r"), lambda: run.append("r", EVENTS, [{}])):
        with pytest.raises(Corrupt, match="the record of run r was changed"):
            use()


def test_appending_onto_a_changed_end_is_found_on_reading(run: Store, path: Path, change: Change) -> None:
    change("UPDATE ksearch_runs SET hash = ?", "0" * 64)
    assert "the end of the log" in read(run)[1]
    run.append("r", EVENTS, [{}])
    assert f"event {EVENTS + 1} is damaged" in read(run)[1]


def test_damaged_blob_is_named_and_storing_it_again_repairs_it(run: Store, path: Path, change: Change) -> None:
    sha = blob_name(b"source")
    change("UPDATE ksearch_blobs SET data = x'00'")
    with pytest.raises(Corrupt, match=sha):
        run.get_blob(sha)
    assert run.put_blob(b"source") == sha
    assert run.get_blob(sha) == b"source"


def closed(path: Path) -> bytes:
    with open_store(path) as store:
        store.create_run("r", {})
        store.append("r", 0, [{"n": n, "pad": "x" * 3000} for n in range(50)])
    return path.read_bytes()


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("kept", [50, 4096, 20_000, -5000])
def test_truncated_file_is_refused_with_the_cure(path: Path, kept: int, readonly: bool) -> None:
    data = closed(path)
    path.write_bytes(data[:kept])
    with pytest.raises(Corrupt, match=r"(cut short|overwritten).*backup"), open_store(path, readonly=readonly) as store:
        list(store.read("r"))


@pytest.mark.parametrize("junk", [b"hello\n" * 1000, b"\0" * 8192])
def test_file_that_is_no_database_is_refused_untouched(path: Path, junk: bytes) -> None:
    path.write_bytes(junk)
    with pytest.raises(StoreError, match="not a K-Search store"):
        open_store(path)
    assert path.read_bytes() == junk


def test_overwritten_pages_are_a_message_not_a_traceback(path: Path) -> None:
    data = bytearray(closed(path))
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(Corrupt, match="damaged or was cut short"), open_store(path) as store:
        list(store.read("r"))
