"""What the coordinator knows of devices: no GPU is needed here."""

from __future__ import annotations

import os
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import CUDA_TYPES, DTYPE_BYTES, TaskSpec, Tensor
from ksearch.errors import EvaluatorError, TaskError
from ksearch.evaluators import devices, elf, linux
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.gpu import ceilings as gpu_ceilings
from ksearch.evaluators.gpu import nvml
from ksearch.evaluators.gpu.ceilings import GpuCeilings
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.tasks import load_task
from ksearch.types import Program

TASKS = Path(__file__).parents[1] / "gpu" / "tasks"
ABOUT = {
    "name": "NVIDIA H200", "uuid": "GPU-1234-ab", "capability": [9, 0], "cuda": "13.0", "free_bytes": 100 << 30,
}  # fmt: skip
RATES = {"float16": 750e12, "bfloat16": 780e12, "tf32": 400e12, "float32": 51e12, "float64": 63e12}


def test_a_task_for_gpus_loads_without_one() -> None:
    spec = load_task(TASKS / "matmul").spec
    assert spec.device == "cuda"
    assert spec.inputs[0].dtype == "bfloat16"
    assert TaskSpec.from_dict(spec.to_dict()) == spec


def test_types_that_numpy_lacks_need_a_gpu(spec: TaskSpec) -> None:
    with pytest.raises(ValueError, match='bfloat16 needs device = "cuda"'):
        replace(spec, inputs=(Tensor("x", "bfloat16", ("m", "n")),))
    assert replace(spec, device="cuda", inputs=(Tensor("x", "bfloat16", ("m", "n")),)).device == "cuda"


@pytest.mark.parametrize(("old", "new", "words"), [
    ('device = "cuda"', 'device = "gpu"', "'gpu' is not known"),
    ('languages = ["triton", "cuda", "python"]', 'languages = ["cpp"]', "'cpp' does not run on device 'cuda'"),
    ('device = "cuda"\nlanguages = ["triton", "cuda", "python"]', 'languages = ["python"]', "NumPy has no bfloat16"),
])  # fmt: skip
def test_a_device_that_does_not_fit_is_told_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    shutil.copytree(TASKS / "matmul", tmp_path / "task")
    path = tmp_path / "task" / "task.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TaskError, match=r"task.toml:\d+: ") as caught:
        load_task(tmp_path / "task")
    assert words in str(caught.value)


def test_without_torch_or_a_gpu_one_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "softmax")
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EvaluatorError, match="torch, which is not installed for"):
        Bench(task.spec, task.folder, EvaluatorOptions())
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(nvml, "gpus", list)
    with pytest.raises(EvaluatorError, match="needs an NVIDIA GPU"):
        Bench(task.spec, task.folder, EvaluatorOptions())


def test_a_floor_takes_the_fastest_arithmetic_that_the_precision_allows() -> None:
    found = GpuCeilings((1 << 20, 1 << 30), (1e12, 4e12), RATES, 0.0)
    work = 1e12  # operations
    floors = {p: replace(found, precision=p).floor_ms(1.0, work) for p in ("tolerance", "tf32", "float32", "float64")}
    assert floors["tolerance"] == pytest.approx(1e3 * work / 780e12 / gpu_ceilings.MARGIN)
    assert floors["tolerance"] < floors["tf32"] < floors["float32"] < floors["float64"]
    # Never above what plain arithmetic of that type takes: an honest program must not be called too fast.
    assert floors["float32"] <= 1e3 * work / RATES["float32"]
    assert floors["float64"] <= 1e3 * work / RATES["float64"]


def test_a_small_working_set_is_not_held_to_the_rate_of_small_copies() -> None:
    found = GpuCeilings((1 << 18, 1 << 20, 1 << 25, 1 << 30), (4e10, 2e11, 5e12, 4e12), RATES, 0.0)
    assert found.floor_ms(1 << 18, 0.0) == pytest.approx(1e3 * (1 << 18) / 5e12 / gpu_ceilings.MARGIN)
    assert found.floor_ms(1 << 30, 0.0) == pytest.approx(1e3 * (1 << 30) / 4e12 / gpu_ceilings.MARGIN)


def test_ceilings_are_kept_per_model_and_go_stale(tmp_path: Path, spec: TaskSpec) -> None:
    device = devices.GpuDevice()
    device.about = ABOUT
    data = {"sizes": [1], "bytes_per_s": [1.0], "operations_per_s": RATES, "measured_at": 0.0}
    device.keep_ceilings(tmp_path, data, spec)
    assert device.cached_ceilings(tmp_path, spec) is None  # measured in 1970
    device.keep_ceilings(tmp_path, {**data, "measured_at": time.time()}, spec)
    assert device.cached_ceilings(tmp_path, spec) is not None
    device.about = {**ABOUT, "name": "NVIDIA L4"}
    assert device.cached_ceilings(tmp_path, spec) is None


def test_each_gpu_has_a_lock_of_its_own() -> None:
    one, other = devices.GpuDevice(), devices.GpuDevice()
    one.about, other.about = ABOUT, {**ABOUT, "uuid": "GPU-../../etc"}
    assert one.lease() != other.lease()
    assert other.lease().parent == one.lease().parent


def test_nvcc_builds_for_the_gpu_at_hand() -> None:
    assert devices.architecture_flags(ABOUT) == ("-gencode=arch=compute_90a,code=sm_90a",)
    assert devices.architecture_flags({"capability": [8, 6]}) == ("-gencode=arch=compute_86,code=sm_86",)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
def test_a_cuda_program_is_built_in_the_jail(spec: TaskSpec, quick: EvaluatorOptions, tmp_path: Path) -> None:
    text = (TASKS.parent / "programs" / "softmax.cu").read_text()
    bench = Bench(spec, TASKS / "softmax", quick)
    try:
        bench.builder.cuda_flags = devices.architecture_flags(ABOUT)
        built = bench.builder.build(Program({"softmax.cu": text}, "softmax.cu::run", "cuda"), 60.0)
    finally:
        bench.close()
    assert "run" in built.symbols.exported
    assert "sm_90a" in " ".join(built.command)
    assert elf.read_symbols(built.data) == built.symbols


def test_a_gpu_program_may_open_local_sockets_only() -> None:
    """The driver's library needs them."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        linux.seccomp(threads=True, processes=True, local_sockets=True)
        said = []
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
            try:
                socket.socket(family, socket.SOCK_RAW if family == socket.AF_NETLINK else socket.SOCK_STREAM).close()
                said.append("y")
            except PermissionError:
                said.append("n")
        os.write(writer, "".join(said).encode())
        os._exit(0)
    os.wait()
    assert os.read(reader, 10) == b"ynnn"


def test_every_dtype_has_a_size_that_cuda_types_name() -> None:

    assert set(CUDA_TYPES) == set(DTYPE_BYTES)
