"""Hardware counters: `ncu`'s report, the fence around it (real, with a stand-in for the tool), one try per machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksearch.definition import TaskSpec
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.gpu import counters
from ksearch.evaluators.gpu.counters import Job, NoCounters, parsed
from ksearch.evaluators.options import EvaluatorOptions

JOB = Job({"language": "python", "file": "kernel.py", "name": "run", "harness": False}, {"key": "k"}, b"{}")
NAMES = ["ID", "Kernel Name", "gpu__time_duration.sum", *counters.METRICS.values()]
ROWS = [
    ["", "", "nsecond", "%", "%", "%", "%"],
    ["0", "copy(float*, int)", "1,500", "20.5", "10", "5", "60"],
    ["1", "product", "44,000.5", "81.25", "40", "30.5", "104.2"],
]


def csv_text(rows: list[list[str]] = ROWS) -> str:
    return "\n".join(["==PROF== Connected", *(",".join(f'"{v}"' for v in row) for row in [NAMES, *rows])])


def test_the_longest_kernel_counts():
    assert parsed(csv_text()) == {"dram": 81.25, "l2": 40.0, "sm": 30.5, "occupancy": 100.0}
    assert parsed(csv_text([["0", "k", "7", "n/a", "-1", "nan", "50"]])) == {"occupancy": 50.0}


@pytest.mark.parametrize(
    ("report", "printed", "words"),
    [
        ("", "", "ncu wrote no counters"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "", "ERR_NVGPUCTRPERM"),
        ("", "==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "LibraryNotLoaded"),
        (csv_text(ROWS[:1]), "", "no counters"),
        ('"a","b"\n"gpu__time_duration.sum"\n', "", "no counters"),
    ],
)
def test_a_report_without_counters_is_told_in_the_tools_words(report, printed, words):
    with pytest.raises(NoCounters, match=words):
        parsed(report, printed)


@pytest.fixture(scope="module")
def bench(spec: TaskSpec, task: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(spec, task, EvaluatorOptions(cache=tmp_path_factory.mktemp("cache")))
    yield made
    made.close()


def tool(folder: Path, body: str) -> str:
    """Stands in for ncu: a Python program that knows where its report belongs."""
    path = folder / "ncu"
    head = "import json, os, socket, sys, time\nreport = sys.argv[sys.argv.index('--log-file') + 1]\n"
    path.write_text(f"#!{sys.executable} -I\n{head}{body}\n")
    path.chmod(0o755)
    folder.chmod(0o755)
    return str(path)


def test_it_runs_fenced_with_a_loopback_and_nothing_else(bench, tmp_path):
    (tmp_path / "secret").touch()
    own = tmp_path / "tool"
    own.mkdir()
    body = f"""
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5)
try:
    socket.create_connection(("1.1.1.1", 53), 2)
    outside = True
except OSError:
    outside = False
seen = [os.path.exists({str(tmp_path / "secret")!r}), outside, [name for _, name in socket.if_nameindex()]]
seen += [sum(p.isdigit() for p in os.listdir("/proc")) < 5, os.getuid(), json.load(open("order.json"))["map"]]
print("==ERROR== " + json.dumps(seen), flush=True)
"""
    with pytest.raises(NoCounters) as raised:
        counters.read(bench, JOB, tool(own, body))
    if "no name spaces" in str(raised.value):
        pytest.skip("no name spaces here")
    secret, outside, networks, few, uid, order = json.loads(str(raised.value).removeprefix("ERROR== "))
    assert (secret, outside, networks, few, order) == (False, False, ["lo"], True, {"key": "k"})
    assert uid != 0


def test_its_report_is_read(bench, tmp_path):
    words = f"open(report, 'w').write({csv_text()!r})"
    assert counters.read(bench, JOB, tool(tmp_path, words))["dram"] == 81.25


def test_a_link_instead_of_a_report_is_not_followed(bench, tmp_path):
    with pytest.raises(NoCounters, match="wrote no counters"):
        counters.read(bench, JOB, tool(tmp_path, "os.symlink('/etc/passwd', report)"))


def test_a_tool_that_hangs_is_ended(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(counters, "LIMIT_S", 0.5)
    with pytest.raises(NoCounters, match=r"did not end within 0\.5 s"):
        counters.read(bench, JOB, tool(tmp_path, "time.sleep(60)"))


def test_without_the_tool_there_are_none(bench, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoCounters, match="ncu is not in PATH"):
        counters.read(bench, JOB)


def test_it_is_tried_once_per_machine_and_again_after_a_new_driver(bench, monkeypatch):
    tried: list[int] = []

    def read(*_: object) -> dict[str, float]:
        tried.append(1)
        if len(tried) == 1:
            raise NoCounters("not permitted")
        return {"dram": 1.0}

    monkeypatch.setattr(counters, "read", read)
    monkeypatch.setattr(bench.device, "state", lambda: {"uuid": "GPU-1", "driver": "1"})
    for _ in range(2):
        with pytest.raises(NoCounters, match="not permitted"):
            counters.permitted(bench, JOB)
    assert len(tried) == 1
    monkeypatch.setattr(bench.device, "state", lambda: {"uuid": "GPU-1", "driver": "2"})
    counters.permitted(bench, JOB)
    counters.permitted(bench, JOB)
    assert len(tried) == 2
    (kept,) = Path(bench.options.cache).glob("counters-*.json")
    assert json.loads(kept.read_text())["why"] == ""


def test_the_command_leaves_clocks_alone_and_counts_between_start_and_stop():
    words = counters.command("/opt/ncu", "/tmp/x", {"LD_LIBRARY_PATH": "/cuda"})
    assert words[1:3] == ["LD_LIBRARY_PATH=/cuda", "/opt/ncu"]
    assert words[words.index("--clock-control") + 1] == "none"
    assert words[words.index("--profile-from-start") + 1] == "off"
    compile(words[-1], "command", "exec")


def test_without_name_spaces_nothing_is_started():
    counters.fenced(["uid", "pid_ns", "net_ns", "mount_ns", "no_new_privs"])
    with pytest.raises(NoCounters, match=r"no name spaces to run ncu in \(mount_ns, net_ns\)"):
        counters.fenced(["uid", "pid_ns", "landlock", "seccomp", "no_new_privs"])
