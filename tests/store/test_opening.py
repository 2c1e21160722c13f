"""Where a store can be opened, and what is said where it cannot."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from ksearch.errors import StoreError
from ksearch.store import Store, open_store
from ksearch.store.sqlite import BUSY_TIMEOUT_S, file_system_of, has_wal_reset_bug, is_network, sound_module

Change = Callable[..., None]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_new_store_makes_its_folder_and_uses_wal(tmp_path: Path) -> None:
    with open_store(tmp_path / "a" / "b" / "ksearch.db") as store:
        assert (store.runs(), store.notes) == ([], ())
        with store._engine.connect() as conn:
            assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert conn.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_sqlite_url_names_the_same_file_as_the_path(path: Path) -> None:
    with open_store(f"sqlite:///{path}") as store:
        store.create_run("r", {})
    with open_store(path) as store:
        assert store.run("r").seq == 0


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True), ((3, 44, 6), False),
        ((3, 45, 0), True), ((3, 50, 6), True), ((3, 50, 7), False), ((3, 51, 2), True), ((3, 51, 3), False),
        ((3, 53, 4), False),
    ],
)  # fmt: skip
def test_versions_with_the_wal_reset_bug(version: tuple[int, ...], affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected


def test_without_a_sound_sqlite_the_rollback_journal_is_used_and_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 40, 1))
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    with open_store(path) as store:
        assert "WAL-reset bug" in store.notes[0]
        assert "pip install 'pysqlite3" in store.notes[0]
        with store._engine.connect() as conn:
            assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/fast tmpfs rw 0 0
host: /mnt/with\\040space fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [("/tmp", "ext4"), ("/home/me", "nfs4"), ("/home/me/fast/x", "tmpfs"), ("/mnt/with space", "fuse.sshfs"),
     ("/homework", "ext4")],
)  # fmt: skip
def test_file_system_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    assert file_system_of(Path(place), MOUNTS) == kind
    assert is_network(kind) is (kind in ("nfs4", "fuse.sshfs"))


def test_network_file_system_gets_the_rollback_journal_even_for_an_old_wal_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(path).close()
    monkeypatch.setattr("ksearch.store.sqlite._mounts", lambda: f"server:/x {path.parent} nfs rw 0 0\n")
    with open_store(path) as store:
        assert "network file system (nfs)" in store.notes[0]
        with store._engine.connect() as conn:
            assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_viewer_of_nothing_is_told_so_and_makes_nothing(path: Path) -> None:
    with pytest.raises(StoreError, match="There is no store at"):
        open_store(path, readonly=True)
    assert not path.exists()


def test_viewer_cannot_write_even_past_the_store(path: Path) -> None:
    open_store(path).close()
    with open_store(path, readonly=True) as viewer:
        for use in (lambda: viewer.create_run("r", {}), lambda: viewer.put_blob(b"x")):
            with pytest.raises(StoreError, match="viewing only"):
                use()
        viewer.readonly = False
        with pytest.raises(StoreError, match="read-only"):
            viewer.put_blob(b"x")


def test_newer_store_is_refused_untouched(path: Path, change: Change) -> None:
    open_store(path).close()
    change("UPDATE ksearch_schema SET version = 99")
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"newer K-Search \(store version 99.*pip install --upgrade"):
            open_store(path, readonly=readonly)


def test_database_of_another_program_is_refused_untouched(path: Path) -> None:
    with sound_module()[0].connect(str(path)) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    with pytest.raises(StoreError, match="holds no store"):
        open_store(path, readonly=True)


def test_folder_or_nothing_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is a folder.*ksearch\.db"):
        open_store(tmp_path)
    with pytest.raises(StoreError, match="has no name"):
        open_store("")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        open_store(tmp_path / "file" / "ksearch.db")


@pytest.mark.parametrize("url", ["mysql://me@host/db", "postgresql://me@host:port/db", "redis://x"])
def test_url_that_cannot_be_a_store(url: str) -> None:
    with pytest.raises(StoreError, match="sqlite:///path or postgresql://"):
        open_store(url)


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **more: object) -> object:
        if name.startswith("psycopg"):
            raise ImportError(name)
        return real(name, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StoreError, match=r"pip install 'k-search\[postgres\]'"):
        open_store("postgresql://me@127.0.0.1/db")


def test_server_out_of_reach_is_named_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_full_disk_stores_nothing_and_goes_on_when_there_is_room(store: Store) -> None:
    store.create_run("r", {})
    limit = [60]

    def small(conn: object, *_: object) -> None:
        conn.execute(f"PRAGMA max_page_count={limit[0]}")  # type: ignore[attr-defined]

    event.listen(store._engine, "checkout", small)
    seq = 0
    with pytest.raises(StoreError, match=r"is full: nothing of this step was stored.*resume"):
        for _ in range(100):
            seq = store.append("r", seq, [{"pad": "x" * 5000}])
    assert 0 < seq == len(list(store.read("r"))) < 100
    limit[0] = 10_000
    assert store.append("r", seq, [{}]) == seq + 1


@as_root
def test_really_full_disk(small_disk: Path) -> None:
    seq = 0
    with open_store(small_disk / "ksearch.db") as store:
        store.create_run("r", {})
        with pytest.raises(StoreError, match=r"is full|disk failed"):
            for _ in range(1000):
                seq = store.append("r", seq, [{"pad": "x" * 5000}])
        assert 0 < seq == len(list(store.read("r")))
    with open_store(small_disk / "ksearch.db", readonly=True) as viewer:
        assert len(list(viewer.read("r"))) == seq


def said_to_nobody(use: Callable[[], object]) -> str:
    """Return the message of the `StoreError` that `use` raises for a user who owns nothing here."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            use()
        except StoreError as err:
            os.write(write, str(err).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


@as_root
def test_missing_permission_is_named_by_file_or_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "ksearch.db"
        open_store(path).close()
        assert "cannot be reached: Permission denied" in said_to_nobody(lambda: open_store(path))
        folder.chmod(0o755)
        assert f"{path} is read-only" in said_to_nobody(lambda: open_store(path))
        assert said_to_nobody(lambda: open_store(path, readonly=True).close()) == ""
        assert f"folder {folder} is read-only" in said_to_nobody(lambda: open_store(folder / "other.db"))
        assert "cannot be made" in said_to_nobody(lambda: open_store(folder / "new" / "other.db"))
        path.chmod(0o600)
        assert "may not be read" in said_to_nobody(lambda: open_store(path, readonly=True))
        path.chmod(0o666)
        assert f"folder {folder} is read-only" in said_to_nobody(lambda: open_store(path))


@as_root
def test_read_only_disk_can_be_viewed_but_not_written(small_disk: Path) -> None:
    path = small_disk / "ksearch.db"
    with open_store(path) as store:
        store.create_run("r", {})
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StoreError, match="read-only"):
        open_store(path)
    with pytest.raises(StoreError, match="cannot be made|read-only"):
        open_store(small_disk / "new" / "ksearch.db")
    with open_store(path, readonly=True) as viewer:
        assert viewer.run("r").seq == 0
        assert "will not be seen" in viewer.notes[0]


def test_lock_held_too_long_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert BUSY_TIMEOUT_S >= 10
    open_store(path).close()
    monkeypatch.setattr("ksearch.store.sqlite.BUSY_TIMEOUT_S", 0.1)
    holder = sound_module()[0].connect(str(path), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with open_store(path, readonly=True) as viewer:
        assert viewer.runs() == []  # WAL: readers go on
    with pytest.raises(StoreError, match="is locked: another process"):
        open_store(path)
    holder.close()
