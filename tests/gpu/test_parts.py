"""The GPU parts one by one, in a process of their own: CUDA is not for the process that runs the tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import TaskSpec, Workload
from ksearch.evaluators.gpu import nvml
from ksearch.evaluators.gpu.doctor import gpu_checks
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.tasks import Task
from ksearch.types import Evaluation, Program
from tests.gpu.conftest import GOOD, file, python

ROOT = Path(__file__).parents[2]


def run(code: str) -> object:
    head = f"import sys, json; sys.path.insert(0, {str(ROOT)!r}); import torch\n"
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_poison_hash_and_comparison_hold_for_every_dtype() -> None:
    found = run("""
from ksearch.definition import DTYPE_BYTES
from ksearch.evaluators.gpu.memory import Gpu
gpu, out = Gpu(), {}
for name in DTYPE_BYTES:
    dtype = getattr(torch, name)
    t = torch.zeros(1003, dtype=dtype, device="cuda")
    gpu.poison(t, "nan")
    floating = dtype.is_floating_point
    nan = bool(t.float().isnan().all()) if floating else True
    kept = gpu.hash(t)
    same = gpu.unchanged(t, kept)
    changed = []
    for at in (0, 500, 1002):
        other = t.clone()
        other.view(torch.uint8)[at * dtype.itemsize] ^= 1
        changed.append(not gpu.unchanged(other, kept))
    swapped = t.clone()
    raw = swapped.view(torch.uint8).view(-1, dtype.itemsize)
    raw[[0, 1]] = raw[[1, 0]]
    gpu.poison(t, "values")
    finite = bool(t.float().isfinite().all()) if floating else True
    out[name] = [nan, same, *changed, gpu.same(swapped, swapped.clone()), finite]
print(json.dumps(out))
""")
    assert found == {name: [True] * len(values) for name, values in found.items()}  # type: ignore[attr-defined]


def test_a_shared_handle_maps_nothing_but_its_own_memory() -> None:
    found = run("""
import os
from ksearch.evaluators.gpu.cuda import Cuda, BLOCK
sizes = [1, 4096, BLOCK, BLOCK + 1, 3 * BLOCK, 100]
reader, writer = os.pipe()
if os.fork() == 0:
    handles = json.loads(os.read(reader, 65536))
    cuda = Cuda()
    opened = [cuda.open(h) for h in handles]
    print(json.dumps([[a - cuda.extent(a)[0], cuda.extent(a)[1]] for a in opened]))
    sys.stdout.flush()
    os._exit(0)
cuda = Cuda()
mine = [cuda.allocate(s) for s in sizes]
os.write(writer, json.dumps([cuda.handle(a) for a in mine]).encode())
os.wait()
""")
    block = 2 << 20
    assert found == [[0, block], [0, block], [0, block], [0, 2 * block], [0, 3 * block], [0, block]]


def test_the_gate_holds_every_stream_until_it_is_opened() -> None:
    found = run("""
import time
from ksearch.evaluators.gpu.cuda import Cuda, Gate
cuda = Cuda()
gate, side = Gate(cuda), torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
x += 1  # loads the kernel: loading waits for the gate
torch.cuda.synchronize()
gate.close(2_000_000_000)
with torch.cuda.stream(side):
    x += 1
done = torch.cuda.Event()
done.record(side)
time.sleep(0.05)
held = not done.query()
gate.open()
cuda.synchronize()
start = time.monotonic()
gate.close(30_000_000)
cuda.synchronize()
print(json.dumps([held, done.query(), 0.025 < time.monotonic() - start < 0.2]))
""")
    assert found == [True, True, True]


def test_the_sandbox_of_a_runner_has_every_rung(evaluator: LocalEvaluator) -> None:
    rungs = set(evaluator.baseline.process.rungs)
    assert {"pid_ns", "mount_ns", "net_ns", "landlock", "seccomp", "no_new_privs", "limits"} <= rungs


@pytest.mark.parametrize("sandbox", ["no_namespaces", "limits"])
def test_a_lower_rung_of_the_sandbox_has_cuda_too(
    sandbox: str, small: TaskSpec, task: Task, quick: EvaluatorOptions
) -> None:
    """What a container gets that may not make name spaces."""
    with LocalEvaluator(small, task.folder, options=replace(quick, sandbox=sandbox)) as one:
        measured = one.evaluate(file("softmax_triton.py", "triton"))
        rungs = set(one.baseline.process.rungs)
    assert isinstance(measured.evaluation, Evaluation), measured.evaluation
    assert measured.evaluation.speedup is not None, measured.evaluation.reason
    assert "pid_ns" not in rungs
    assert ("landlock" in rungs) == ("seccomp" in rungs) == (sandbox == "no_namespaces")


def test_a_runner_sees_neither_the_network_nor_other_processes_nor_the_oracle(evaluator: LocalEvaluator) -> None:
    spy = python(GOOD, (
        "import os, socket\n"
        "def told(step):\n    try:\n        return step()\n    except OSError as e:\n        return type(e).__name__\n"
        "print('SPY', sorted(n for n in os.listdir('/proc') if n.isdigit()), told(lambda: socket.socket().fileno()),\n"
        "      told(lambda: os.listdir('/root')), os.getuid(), told(lambda: open('/etc/x', 'w')), flush=True)\n"
    ))  # fmt: skip
    found = evaluator.evaluate(spy).evaluation
    assert isinstance(found, Evaluation)
    assert found.log.count("SPY") == 1
    words = found.log[found.log.index("SPY") :]
    assert words.startswith("SPY ['1', '2'] PermissionError"), words


def test_the_record_tells_driver_clocks_and_model(evaluator: LocalEvaluator) -> None:
    measured = evaluator.evaluate(python(GOOD))
    gpu = measured.record["gpu"]
    assert gpu["name"] == nvml.gpus()[0]["name"]
    assert gpu["driver"]
    assert gpu["sm_mhz"] > 0
    assert gpu["temperature_c"] > 0
    assert measured.record["sandbox"]["level"] == "namespaces"


def test_no_memory_is_left_behind(evaluator: LocalEvaluator, judge: Callable[[Program], Evaluation]) -> None:
    free = []
    for number in range(6):
        judge(python(f"    # {number}\n{GOOD}"))
        time.sleep(0.3)  # the driver gives a dead process's memory back in its own time
        evaluator.bench.healthy()  # what torch keeps for later use is given back
        free.append(nvml.gpus()[0]["free_bytes"])
    assert max(free[2:]) - min(free[2:]) < 96 << 20, free


def test_doctor_names_the_gpu() -> None:
    lines = gpu_checks()
    assert any(nvml.gpus()[0]["name"] in line.found for line in lines)
    assert all(line.found for line in lines)
    pytest.importorskip("torch")
    assert any("torch" in line.found for line in lines)


def test_inputs_of_several_gigabytes_are_measured_and_confirmed(task: Task, quick: EvaluatorOptions) -> None:
    """4 GiB in and 4 GiB out per call, at two addresses each, in up to four processes."""
    large = replace(
        task.spec, workloads=(Workload("huge", {"rows": 1 << 19, "cols": 2048}),), domain={},
        limits=replace(task.spec.limits, memory_bytes=16 << 30),
    )  # fmt: skip
    with LocalEvaluator(large, task.folder, options=replace(quick, confirm=True, confirm_all=True)) as one:
        measured = one.evaluate(file("softmax.cu", "cuda"))
    found = measured.evaluation
    assert isinstance(found, Evaluation), found
    assert found.confirmed, found.reason
    assert measured.record["timing"][0]["workloads"]["huge"]["buffer_sets"] >= 2
