"""What differs between measuring on a CPU and on a GPU, as far as the coordinator is concerned. No CUDA here."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import ceilings, machine
from ksearch.evaluators.gpu import ceilings as gpu_ceilings
from ksearch.evaluators.gpu import nvml

_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
_CPU_SETS_BYTES = 96 << 20
_HOST_BYTES = 8 << 30  # what CUDA and torch take of a process's own memory, and what just-in-time compilers do
_MEMORY_SHARE = 0.6  # of the GPU's free memory, for the buffer sets of everybody who is timed at once


class Ceilings(Protocol):
    def floor_ms(self, bytes_moved: float, operations: float, threads: int = 1) -> float: ...


class Device(Protocol):
    """`oracle` and `template` are modules of this package; `languages` maps each to whether it is compiled first."""

    oracle: str
    template: str
    languages: Mapping[str, bool]
    late_compilers: tuple[str, ...]  # languages whose first calls compile
    call_slack_ns: int  # what may pass between two queued calls
    launch_slack_ns: int  # what may pass beside a call timed alone
    host_bytes: int
    about: dict[str, Any]

    @property
    def name(self) -> str: ...
    def require(self) -> None: ...
    def environment(self) -> dict[str, str]: ...
    def cores(self, count: int, threads: int) -> int: ...
    def processes(self, threads: int) -> int: ...
    def lease(self) -> Path | None: ...
    def sets_bytes(self, subjects: int, workloads: int) -> int: ...
    def cached_ceilings(self, folder: Path, spec: TaskSpec) -> Ceilings | None: ...
    def keep_ceilings(self, folder: Path, found: Mapping[str, Any], spec: TaskSpec) -> Ceilings: ...
    def state(self) -> dict[str, Any]: ...


class CpuDevice:
    oracle, template = "oracle", "template"
    languages: Mapping[str, bool] = {"cpp": True, "c": True, "python": False}
    late_compilers: tuple[str, ...] = ()
    call_slack_ns = launch_slack_ns = 0
    host_bytes = 0

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return machine.cpu_model()

    def require(self) -> None:
        """See that the processes can start.

        Raises:
            EvaluatorError: what is missing, and how to get it.
        """

    def environment(self) -> dict[str, str]:
        return {}

    def cores(self, count: int, threads: int) -> int:
        """How many of the machine's cores belong to what is timed."""
        return threads

    def processes(self, threads: int) -> int:
        # The kernel counts a thread for a moment longer than whoever joined it: room for as many new ones.
        return threads if threads == 1 else 2 * threads + 2

    def lease(self) -> Path | None:
        return None

    def sets_bytes(self, subjects: int, workloads: int) -> int:
        """All sets of one runner and workload together."""
        return _CPU_SETS_BYTES

    def cached_ceilings(self, folder: Path, spec: TaskSpec) -> Ceilings | None:
        """None also where too few runs were taken yet: the next one may find a quieter machine."""
        found = ceilings.cached(folder)
        return found if found is not None and found.flushed and found.runs >= ceilings.RUNS else None

    def keep_ceilings(self, folder: Path, found: Mapping[str, Any], spec: TaskSpec) -> Ceilings:
        best, known = ceilings.parse(found), ceilings.cached(folder)
        if known is not None:
            best = best.joined(known)
        ceilings.keep(folder, best)
        return best

    def state(self) -> dict[str, Any]:
        return {}


class GpuDevice:
    oracle, template = "gpu.oracle", "gpu.template"
    languages: Mapping[str, bool] = {"cuda": True, "triton": False, "python": False}
    late_compilers: tuple[str, ...] = ("triton", "python")
    call_slack_ns, launch_slack_ns = 3_000, 150_000
    host_bytes = _HOST_BYTES

    def __init__(self, gpu: str | None = None) -> None:
        self.gpu = gpu  # UUID; None: the first that is visible
        self.about: dict[str, Any] = {}  # what the oracle said when it opened

    @property
    def name(self) -> str:
        return str(self.about.get("name", "GPU"))

    def require(self) -> None:
        if importlib.util.find_spec("torch") is None:
            text = f"this task runs on a GPU with torch, which is not installed for {sys.executable}"
            raise EvaluatorError(f"{text}: https://pytorch.org/get-started/locally")
        if not nvml.gpus():
            raise EvaluatorError("this task needs an NVIDIA GPU, and no driver shows one here: see `nvidia-smi`")

    @property
    def uuid(self) -> str:
        return str(self.about.get("uuid", ""))

    def environment(self) -> dict[str, str]:
        passed_on = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        return {**passed_on, "CUDA_VISIBLE_DEVICES": self.gpu} if self.gpu else passed_on

    def cores(self, count: int, threads: int) -> int:
        return max(threads, min(4, count // 2))

    def processes(self, threads: int) -> int:
        return 256  # the driver's and torch's threads, and just-in-time compilers

    def lease(self) -> Path | None:
        """One per GPU: two searches on one machine share it only if they share the GPU."""
        return Path(tempfile.gettempdir()) / f"ksearch-{re.sub(r'[^A-Za-z0-9-]', '', self.uuid) or 'gpu'}.lock"

    def sets_bytes(self, subjects: int, workloads: int) -> int:
        free = int(self.about["free_bytes"]) * _MEMORY_SHARE
        # Twice: the confirmation has processes and sets of its own.
        return int(free / (2 * max(subjects, 1) * max(workloads, 1)))

    def _path(self, folder: Path) -> Path:
        return folder / f"ceilings-{re.sub(r'[^A-Za-z0-9]+', '-', self.name)}.json"

    def cached_ceilings(self, folder: Path, spec: TaskSpec) -> Ceilings | None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            data = json.loads(self._path(folder).read_text())
            found = gpu_ceilings.parse(data, spec.precision)
            if 0 <= time.time() - found.measured_at < ceilings.MAX_AGE_S:
                return found
        return None

    def keep_ceilings(self, folder: Path, found: Mapping[str, Any], spec: TaskSpec) -> Ceilings:
        with suppress(OSError):  # no cache: measured again next time
            folder.mkdir(parents=True, exist_ok=True)
            draft = self._path(folder).with_suffix(".draft")
            draft.write_text(json.dumps(dict(found)))
            draft.replace(self._path(folder))
        return gpu_ceilings.parse(found, spec.precision)

    def state(self) -> dict[str, Any]:
        """Clocks, temperature and users of the GPU now."""
        return nvml.state(self.uuid)


def device_of(spec: TaskSpec, gpu: str | None = None) -> Device:
    """`gpu`: the UUID of the one to measure on, where there are several."""
    if spec.device == "cuda":
        return GpuDevice(gpu)
    return CpuDevice()


def architecture_flags(about: Mapping[str, Any]) -> tuple[str, ...]:
    """nvcc's flags for the GPU at hand: all of its instructions, and nothing to be compiled at start."""
    major, minor = about["capability"]
    number = f"{major}{minor}{'a' if major >= 9 else ''}"
    return (f"-gencode=arch=compute_{number},code=sm_{number}",)


def runtime_flags(about: Mapping[str, Any], compiler: str) -> tuple[str, ...]:
    """Share torch's CUDA runtime where nvcc is of the same major version; else each library brings its own."""
    path = shutil.which(compiler)
    root = Path(path).resolve().parents[1] if path else Path("/")
    text = ""
    with suppress(OSError):
        text = (root / "version.json").read_text()
    found = re.search(r'"cuda_nvcc"[^}]*"version"\s*:\s*"(\d+)', text, re.DOTALL)
    wanted = str(about.get("cuda") or "").split(".")[0]
    return ("-cudart", "shared") if found and found[1] == wanted else ()
