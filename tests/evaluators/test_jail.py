"""What a candidate can reach, seen from inside, on each rung of the ladder; and that nothing of it survives."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ksearch.evaluators import jail
from ksearch.evaluators.jail import JailSpec
from ksearch.evaluators.jailed import Jailed
from ksearch.evaluators.processes import Ended, Overdue, Service, clean_environment, visible_paths

SPY = r"""
import json, os, socket
def attempt(step):
    try:
        return step()
    except BaseException as error:
        return type(error).__name__
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "forked"
found = {
    "uid": os.getuid(), "pid": os.getpid(), "environment": sorted(os.environ),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "processes": sum(name.isdigit() for name in attempt(lambda: os.listdir("/proc"))),
    "shadow": attempt(lambda: open("/etc/shadow").read()),
    "home": attempt(lambda: os.listdir("/root")),
    "secret": attempt(lambda: open(SECRET).read()),
    "interfaces": attempt(lambda: len(open("/proc/self/net/dev").readlines()) - 2),
    "socket": attempt(lambda: socket.socket().fileno() >= 0),
    "fork": attempt(fork),
    "write": attempt(lambda: open(SHARED, "w").write("x")),
    "write_usr": attempt(lambda: open("/usr/share/mine", "w").write("x")),
    "unpin": attempt(lambda: os.sched_setaffinity(0, range(os.cpu_count()))),
    "cwd": os.getcwd(), "parent_memory": attempt(lambda: open(f"/proc/{os.getppid()}/mem", "rb").fileno() >= 0),
}
print(json.dumps(found), flush=True)
def run(x):
    return x
"""


@pytest.fixture(scope="module")
def template() -> Iterator[Service]:
    os.environ["KSEARCH_TEST_SECRET_KEY"] = "hunter2"
    service = Service("template", clean_environment(1))
    yield service
    service.close()
    del os.environ["KSEARCH_TEST_SECRET_KEY"]


@pytest.fixture
def start(template: Service) -> Iterator[Callable[..., Jailed]]:
    made: list[Jailed] = []
    uids = iter(range(64_500, 64_600))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)

        def build(**changes: object) -> Jailed:
            uid = next(uids) if os.geteuid() == 0 else None
            private = Path(folder) / str(len(made))
            private.mkdir(mode=0o700)
            if uid is not None:
                os.chown(private, uid, uid)
            given = {"folder": str(private), "uid": uid, "visible": visible_paths(), **changes}
            made.append(Jailed(template, JailSpec(**given)))  # type: ignore[arg-type]
            return made[-1]

        yield build
        for process in made:
            process.close()


def spy(process: Jailed, secret: Path) -> dict[str, object]:
    text = SPY.replace("SECRET", repr(str(secret))).replace("SHARED", repr(f"/tmp/{secret.parent.name}-mine"))
    fd = os.memfd_create("program")
    os.write(fd, json.dumps({"spy.py": text}).encode())
    os.lseek(fd, 0, 0)
    process.ask({"do": "load", "language": "python", "file": "spy.py", "name": "run", "harness": False}, [fd])
    os.close(fd)
    process.close()
    found: dict[str, object] = json.loads(process.log)
    return found


def test_name_spaces_hide_host_files_processes_and_network(start: Callable[..., Jailed], tmp_path: Path) -> None:
    process = start()
    if jail.level(process.rungs) != "namespaces":
        pytest.skip(f"no name spaces here: {process.rungs}")
    (tmp_path / "secret").write_text("expected values")
    (tmp_path / "secret").chmod(0o644)
    found = spy(process, tmp_path / "secret")
    assert found["secret"] in ("FileNotFoundError", "PermissionError")
    assert found["shadow"] == "PermissionError"
    assert found["interfaces"] == 1  # loopback, down
    assert found["processes"] == 2  # its keeper and itself
    assert found["write"] == 1  # its own /tmp
    assert not Path(f"/tmp/{tmp_path.name}-mine").exists()
    assert found["cwd"] == "/tmp"
    assert found["fork"] == "BlockingIOError"
    assert found["socket"] == found["unpin"] == found["parent_memory"] == "PermissionError"


@pytest.mark.skipif(os.geteuid() != 0, reason="uids can be dropped by root only")
@pytest.mark.parametrize(("skip", "level"), [
    ((), "namespaces"), (("namespaces",), "landlock"), (("namespaces", "landlock", "seccomp"), "limits"),
])  # fmt: skip
def test_every_rung_keeps_secrets_descriptors_and_root_away(
    skip: tuple[str, ...], level: str, start: Callable[..., Jailed], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("expected values")
    (tmp_path / "secret").chmod(0o600)
    process = start(skip=skip)
    assert jail.level(process.rungs) in (level, "limits")
    found = spy(process, tmp_path / "secret")
    assert found["uid"] >= 61_000  # type: ignore[operator]
    assert found["secret"] != "expected values"
    assert found["shadow"] == found["write_usr"] == found["parent_memory"] == "PermissionError"
    assert not any("SECRET" in name for name in found["environment"])  # type: ignore[attr-defined]
    assert len(found["descriptors"]) <= 6  # 0, 1, 2, its control, the program and the listing itself
    assert found["fork"] == "BlockingIOError"
    Path(f"/tmp/{tmp_path.name}-mine").unlink(missing_ok=True)  # the lowest rung leaves the host's /tmp open


def test_a_process_that_ends_is_reported_with_its_signal(start: Callable[..., Jailed]) -> None:
    process = start()
    ending = process.kill()
    assert ending["signal"] == 9
    assert ending["killed"]
    with pytest.raises(Ended):
        process.ask({"do": "drop", "key": "x"})


def test_a_stopped_process_does_nothing_until_it_is_resumed(start: Callable[..., Jailed]) -> None:
    process = start()
    process.stop()
    with pytest.raises(Overdue) as overdue:
        process.ask({"do": "drop", "key": "x"}, timeout_s=0.3)
    assert overdue.value.ending["cpu_s"] < 0.2
    other = start()
    other.stop()
    other.resume()
    assert other.ask({"do": "drop", "key": "x"}) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="a sweep by uid needs one of its own")
@pytest.mark.parametrize("skip", [("seccomp",), ("namespaces", "landlock", "seccomp")])
def test_no_grandchild_survives(skip: tuple[str, ...], start: Callable[..., Jailed]) -> None:
    process = start(skip=(*skip, "limit_processes"))
    marker = f"marker-{os.getpid()}-{len(skip)}"
    text = (
        "import os, time, ctypes\n"
        f"name = {marker!r}.encode()\n"
        "for i in range(5):\n    if os.fork() == 0:\n        os.setsid()\n"
        "        ctypes.CDLL(None).prctl(15, name[:15], 0, 0, 0)\n        time.sleep(600)\n"
        "def run(x): return x\n"
    )
    fd = os.memfd_create("program")
    os.write(fd, json.dumps({"a.py": text}).encode())
    os.lseek(fd, 0, 0)
    process.ask({"do": "load", "language": "python", "file": "a.py", "name": "run", "harness": False}, [fd])
    os.close(fd)
    deadline = time.monotonic() + 5
    while count_named(marker[:15]) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert count_named(marker[:15]) == 5
    process.close()
    assert count_named(marker[:15]) == 0


def count_named(name: str) -> int:
    count = 0
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            count += path.read_text().strip() == name
        except OSError:
            continue
    return count


def test_everything_ends_when_the_coordinator_goes_away(start: Callable[..., Jailed]) -> None:
    service = Service("template", clean_environment(1))
    with tempfile.TemporaryDirectory() as folder:
        process = Jailed(service, JailSpec(folder=folder, visible=visible_paths()))
        group = service.process.pid
        process.control.close()
        process.keeper.close()
        os.close(process.output)
        service.close()
        deadline = time.monotonic() + 5
        while Path(f"/proc/{group}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert service.process.returncode == 0


def test_the_template_never_grows_threads_or_descriptors(template: Service, start: Callable[..., Jailed]) -> None:
    start().close()
    folder = Path(f"/proc/{template.process.pid}")
    before = len(list((folder / "fd").iterdir()))
    for _ in range(5):
        start().close()
    assert len(list((folder / "fd").iterdir())) == before
    assert len(list((folder / "task").iterdir())) == 1
