"""A run as one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksearch.errors import Corrupt, StoreError
from ksearch.store import Store, blob_name, export_run, import_run, open_store

TEXT, BYTES = "source µ\n".encode(), b"\xff\0binary"
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=8
)
BODY = st.dictionaries(WORDS, JSON, max_size=4)


@pytest.fixture
def file(store: Store, tmp_path: Path) -> Path:
    store.create_run("r", {"config": blob_name(b"config")})
    store.put_blob(b"config")
    store.append("r", 0, [{"raw": blob_name(TEXT)}, {"raw": blob_name(BYTES), "also": "0" * 64}], [TEXT, BYTES])
    store.append("r", 2, [{"again": f"sha256:{blob_name(TEXT)}"}])
    export_run(store, "r", tmp_path / "r.jsonl")
    return tmp_path / "r.jsonl"


def test_exported_run_opens_without_a_database_for_viewing(store: Store, file: Path) -> None:
    with open_store(file) as viewer:
        assert viewer.run("r").meta == store.run("r").meta
        assert list(viewer.read("r")) == list(store.read("r"))
        assert [viewer.get_blob(blob_name(data)) for data in (TEXT, BYTES, b"config")] == [TEXT, BYTES, b"config"]
        with pytest.raises(StoreError, match="viewing only"):
            viewer.append("r", 3, [{}])


def test_import_then_export_gives_the_same_bytes(file: Path, tmp_path: Path) -> None:
    with open_store(tmp_path / "other.db") as other:
        assert import_run(other, file).seq == 3
        export_run(other, "r", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def test_blob_comes_before_the_first_event_that_mentions_it_and_once(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [next(key for key in ("id", "blob", "seq", "end") if key in line) for line in lines] == [
        "id", "blob", "blob", "seq", "blob", "seq", "seq", "end"
    ]  # fmt: skip
    assert lines[2]["text"] == TEXT.decode()


def test_longer_run_only_adds_lines(store: Store, file: Path, tmp_path: Path) -> None:
    store.append("r", 3, [{"n": 4}])
    export_run(store, "r", tmp_path / "longer.jsonl")
    before, after = (p.read_text(encoding="utf-8").splitlines() for p in (file, tmp_path / "longer.jsonl"))
    assert after[: len(before) - 1] == before[:-1]
    assert len(after) == len(before) + 1


def test_any_line_changed_or_lost_is_found_and_nothing_is_kept(file: Path, tmp_path: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    bad = tmp_path / "bad.jsonl"
    with open_store(":memory:") as other:
        for number, line in enumerate(lines):
            for instead in (line.replace("1", "2").replace("3", "4"), "", "junk\n", "[]\n", "\n"):
                if '"blob"' in line and instead == "":
                    continue  # a blob that is not there is missed when it is asked for
                bad.write_text("".join([*lines[:number], instead, *lines[number + 1 :]]), encoding="utf-8")
                with pytest.raises(StoreError):
                    import_run(other, bad)
                assert other.runs() == []


def test_damage_is_named_by_line(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"text":"source', '"text":"sourcf'), encoding="utf-8")
    with pytest.raises(Corrupt, match=r"r\.jsonl, line 3: damaged: the blob"):
        open_store(file)


def test_file_cut_short_is_found(file: Path) -> None:
    file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    with pytest.raises(Corrupt, match="cut short"):
        open_store(file)


def test_foreign_newer_or_missing_file_is_told_apart(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    with pytest.raises(StoreError, match="could not be read: No such file"):
        open_store(other)
    other.write_text('{"hello":1}\n', encoding="utf-8")
    with pytest.raises(StoreError, match="not an exported run"):
        open_store(other)
    other.write_text(file.read_text(encoding="utf-8").replace('"version":1', '"version":2'), encoding="utf-8")
    with pytest.raises(StoreError, match="format version 2.*Upgrade"):
        open_store(other)


def test_failed_export_leaves_the_old_file(store: Store, file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(StoreError, match="could not be written"):
        export_run(store, "r", tmp_path / "missing" / "r.jsonl")
    with pytest.raises(StoreError, match="no run"):
        export_run(store, "nobody", file)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(BODY, max_size=5), meta=BODY)
def test_any_json_survives_store_and_file(
    tmp_path: Path, bodies: list[dict[str, object]], meta: dict[str, object]
) -> None:
    with open_store(":memory:") as store:
        store.create_run("r", meta)
        store.append("r", 0, bodies)
        assert [event.body for event in store.read("r")] == bodies
        export_run(store, "r", tmp_path / "h.jsonl")
        with open_store(tmp_path / "h.jsonl") as viewer:
            assert viewer.run("r").meta == meta
            assert list(viewer.read("r")) == list(store.read("r"))


GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("run-v*.jsonl")), ids=lambda path: path.stem)
def test_run_exported_by_each_released_version_still_opens(golden: Path, tmp_path: Path) -> None:
    with open_store(golden) as viewer:
        events = list(viewer.read("golden"))  # checks that the hashes are still made in the same way
        assert [event.seq for event in events] == [1, 2, 3]
        assert viewer.get_blob(events[1].body["raw"]) == b"int main() {}\n"
        export_run(viewer, "golden", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == golden.read_bytes()
