"""What every store must do: subclass `StoreContract` in a test module and give it a `store` fixture.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self):
            with open_store(...) as store:
                yield store

The fixture must yield an empty store, or one where the runs named here are not used.
"""

from __future__ import annotations

import threading
import uuid

import pytest

from ksearch.errors import Conflict, StoreError, UnknownBlob, UnknownRun
from ksearch.store import Store, blob_name, canonical, copy_run, open_store


class StoreContract:
    """The contract as tests. Each takes a `store` and, mostly, a fresh `run_id`."""

    @pytest.fixture
    def run_id(self) -> str:
        """Return a name that no other test used: a server keeps what earlier tests stored."""
        return f"run-{uuid.uuid4().hex}"

    def test_new_run_is_listed_with_its_meta_and_no_events(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {"task": "softmax", "budget": 3})
        info = store.run(run_id)
        assert info in store.runs()
        assert (info.id, info.meta, info.seq) == (run_id, {"task": "softmax", "budget": 3}, 0)
        assert info.created_at == info.updated_at > 1e9
        assert list(store.read(run_id)) == []

    def test_taken_name_is_refused_and_the_first_run_kept(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {"first": True})
        with pytest.raises(StoreError, match=f"already holds a run {run_id}"):
            store.create_run(run_id, {"first": False})
        assert store.run(run_id).meta == {"first": True}

    @pytest.mark.parametrize("name", ["", "a b", "../up", "a/b", "-x", "r\u00b2", "a\0", "x" * 101, "a\n"])
    def test_name_unsafe_in_a_path_is_refused(self, store: Store, name: str) -> None:
        with pytest.raises(StoreError, match="cannot name a run"):
            store.create_run(name, {})

    def test_events_come_back_in_order_numbered_from_one(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        bodies = [{"n": n, "text": 'µs \u0000 " \\ 𝄞', "nested": {"b": [1, 2.5, None], "a": True}} for n in range(5)]
        assert store.append(run_id, 0, bodies[:2]) == 2
        assert store.append(run_id, 2, bodies[2:]) == 5
        events = list(store.read(run_id))
        assert [event.seq for event in events] == [1, 2, 3, 4, 5]
        assert [event.body for event in events] == bodies
        assert len({event.hash for event in events}) == 5
        info = store.run(run_id)
        assert (info.seq, info.updated_at) == (5, events[-1].at)

    def test_reading_after_an_event_gives_the_rest(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        store.append(run_id, 0, [{"n": n} for n in range(4)])
        assert [event.seq for event in store.read(run_id, after=2)] == [3, 4]
        assert list(store.read(run_id, after=4)) == []
        with pytest.raises(StoreError, match="events up to 9 were read before"):
            list(store.read(run_id, after=9))

    def test_more_than_one_page_of_events_is_read_whole(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        store.append(run_id, 0, [{"n": n} for n in range(2500)])
        assert [event.body["n"] for event in store.read(run_id)] == list(range(2500))

    def test_second_writer_is_told_where_the_run_is(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        store.append(run_id, 0, [{"by": "first"}, {"by": "first"}])
        with pytest.raises(Conflict) as caught:
            store.append(run_id, 0, [{"by": "second"}], blobs=[run_id.encode()])
        assert caught.value.actual_seq == 2
        assert [event.body["by"] for event in store.read(run_id)] == ["first", "first"]
        assert not store.has_blob(blob_name(run_id.encode()))

    def test_expecting_more_than_there_is_conflicts_too(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        with pytest.raises(Conflict) as caught:
            store.append(run_id, 7, [{}])
        assert caught.value.actual_seq == 0

    def test_events_and_blobs_of_one_append_are_stored_together(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})
        data = [b"second" + run_id.encode(), b"first" + run_id.encode()]
        store.append(run_id, 0, [{"raw": blob_name(data[0])}], blobs=data)
        assert [store.get_blob(blob_name(one)) for one in data] == data

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, b"x", "\ud800"])
    def test_what_is_not_json_is_refused_and_nothing_stored(self, store: Store, run_id: str, bad: object) -> None:
        store.create_run(run_id, {})
        with pytest.raises(StoreError, match="cannot be kept as JSON"):
            store.append(run_id, 0, [{"good": 1}, {"bad": bad}])
        assert list(store.read(run_id)) == []

    def test_unknown_run_and_blob_are_named(self, store: Store) -> None:
        for use in (store.run, lambda name: list(store.read(name)), lambda name: store.append(name, 0, [{}])):
            with pytest.raises(UnknownRun, match="'nobody'.*ksearch runs"):
                use("nobody")
        with pytest.raises(UnknownBlob, match="0" * 64):
            store.get_blob("0" * 64)

    @pytest.mark.parametrize("data", [b"", b"\0\xff" * 10, b"text", b"x" * 3_000_000], ids=len)
    def test_blob_is_kept_once_under_its_hash(self, store: Store, data: bytes) -> None:
        sha = store.put_blob(data)
        assert (sha, store.put_blob(data)) == (blob_name(data), sha)
        assert store.get_blob(sha) == data

    def test_runs_do_not_mix(self, store: Store, run_id: str) -> None:
        for name in (run_id + "a", run_id + "b"):
            store.create_run(name, {})
            store.append(name, 0, [{"of": name}])
        one, other = (list(store.read(run_id + which)) for which in "ab")
        assert one[0].body != other[0].body
        assert one[0].hash != other[0].hash

    def test_copy_in_another_store_is_equal_to_the_last_hash(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {"m": 1})
        store.append(run_id, 0, [{"raw": blob_name(b"answer")}, {"n": 2}], blobs=[b"answer"])
        with open_store(":memory:") as other:
            copy_run(store, other, run_id)
            assert other.run(run_id) == store.run(run_id)
            assert list(other.read(run_id)) == list(store.read(run_id))
            assert other.get_blob(blob_name(b"answer")) == b"answer"
            with pytest.raises(StoreError, match="already holds"):
                copy_run(store, other, run_id)

    def test_threads_racing_on_one_store_lose_nothing(self, store: Store, run_id: str) -> None:
        store.create_run(run_id, {})

        def work(name: int) -> None:
            for n in range(10):
                append_anyhow(store, run_id, {"by": name, "n": n})

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bodies = [canonical(event.body) for event in store.read(run_id)]
        assert len(bodies) == len(set(bodies)) == 40


def append_anyhow(store: Store, run_id: str, body: dict[str, object]) -> int:
    """Append one event, however often somebody else comes first; return its seq."""
    seq = store.run(run_id).seq
    while True:
        try:
            return store.append(run_id, seq, [body])
        except Conflict as conflict:
            seq = conflict.actual_seq
