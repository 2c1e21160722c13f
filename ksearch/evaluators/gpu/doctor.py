"""Is this machine fit to measure on its GPU? For `ksearch doctor`. Imports neither torch nor CUDA into this process."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ksearch.evaluators.gpu import nvml

_BUSY_BYTES = 1 << 30
_LITTLE_BYTES = 4 << 30
_HOT_C = 85
# Reasons that hold clocks down without anybody having asked for it: power, heat, the board.
_SLOWED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat (software)", 0x40: "heat", 0x80: "power brake"}
_PROBE = """
import json, torch
found = {"torch": torch.__version__, "cuda": torch.version.cuda, "usable": torch.cuda.is_available()}
if found["usable"]:
    found["capability"] = list(torch.cuda.get_device_capability())
    found["archs"] = torch.cuda.get_arch_list()
    found["sum"] = float(torch.arange(1, 101, device="cuda").sum())
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `health`: ok, warn (works, but worse than it could) or fail; `cure` where it is not ok."""

    name: str
    health: str
    found: str
    cure: str = ""


def gpu_checks() -> list[Finding]:
    """Driver, GPUs, their memory, users and clocks, torch, Triton, nvcc, counters. Empty where there is no GPU."""
    gpus = nvml.gpus()
    if not gpus:
        return []
    findings = [finding for gpu in gpus for finding in _gpu(gpu)]
    torch = _torch_says()
    return [*findings, _torch(torch), _triton(), _nvcc(torch.get("capability")), _counters()]


def _gpu(gpu: dict[str, Any]) -> Iterator[Finding]:
    name = f"gpu {gpu['index']}"
    yield Finding(
        name, "ok",
        f"{gpu['name']}, driver {gpu['driver']}, {gpu.get('free_bytes', 0) / 2**30:.0f} of "
        f"{gpu.get('memory_bytes', 0) / 2**30:.0f} GiB free, {gpu['sm_mhz']} of {gpu['max_sm_mhz']} MHz, "
        f"{gpu['temperature_c']} degrees",
    )  # fmt: skip
    yield from _room(name, gpu)
    taken = gpu.get("memory_bytes", 0) - gpu.get("free_bytes", 0)
    if gpu["users"] or taken > _BUSY_BYTES:
        who = f"processes {gpu['users']}" if gpu["users"] else "somebody out of our sight"
        yield Finding(
            f"{name} users", "warn", f"{who} compute on it, {taken / 2**30:.1f} GiB are taken",
            "Let them end, or choose another GPU with CUDA_VISIBLE_DEVICES: a busy GPU spoils every time",
        )  # fmt: skip
    slowed = [words for bit, words in _SLOWED.items() if (gpu["throttle_reasons"] or 0) & bit]
    if slowed:
        cure = "Times are taken in pairs, so ratios still hold; absolute times will be higher than usual"
        yield Finding(f"{name} clocks", "warn", f"held down by: {', '.join(slowed)}", cure)


def _room(name: str, gpu: dict[str, Any]) -> Iterator[Finding]:
    """Memory and heat."""
    if (free := gpu.get("free_bytes")) is not None and free < _LITTLE_BYTES:
        cure = "End what holds it, or choose another GPU with CUDA_VISIBLE_DEVICES"
        yield Finding(f"{name} memory", "warn", f"only {free / 2**30:.1f} GiB free: large workloads do not fit", cure)
    if (heat := gpu["temperature_c"]) is not None and heat >= _HOT_C:
        cure = "Let it cool down, look at the fans: a hot GPU clocks down while it is measured"
        yield Finding(f"{name} heat", "warn", f"{heat} degrees", cure)


def _torch_says() -> dict[str, Any]:
    """What torch finds, in a process of its own; `error` where it cannot be used."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, OSError):
        return {"error": "does not start within two minutes"}
    except (IndexError, ValueError):
        words = done.stderr.strip().splitlines()
        return {"error": f"cannot be used: {words[-1] if words else 'no words'}"}
    return found


def _torch(found: dict[str, Any]) -> Finding:
    cure = "Install a build for this driver: https://pytorch.org/get-started/locally"
    if "error" in found:
        return Finding("torch", "fail", found["error"], cure)
    if not found["usable"]:
        return Finding("torch", "fail", f"torch {found['torch']} (CUDA {found['cuda']}) sees no GPU", cure)
    if found["sum"] != 5050.0:
        return Finding("torch", "fail", f"the GPU adds 1 to 100 to {found['sum']}", "Do not measure on this GPU")
    major, minor = found["capability"]
    if not _supported(major, minor, found.get("archs") or []):
        text = (
            f"torch {found['torch']} holds no code for compute capability {major}.{minor}: {', '.join(found['archs'])}"
        )
        return Finding("torch", "fail", text, cure)
    return Finding("torch", "ok", f"torch {found['torch']}, CUDA {found['cuda']}, compute capability {major}.{minor}")


def _triton() -> Finding:
    with suppress(metadata.PackageNotFoundError):
        version = metadata.version("triton")
        if shutil.which("gcc") or shutil.which("cc") or shutil.which("clang") or os.environ.get("CC"):
            return Finding("triton", "ok", f"triton {version}")
        cure = "Install one (Debian: apt-get install gcc)"
        return Finding("triton", "warn", f"triton {version}, but no C compiler, which it needs", cure)
    return Finding("triton", "warn", "not installed: Triton programs cannot be measured", "pip install triton")


def _supported(major: int, minor: int, archs: list[str]) -> bool:
    """Machine code of the same major version and no later minor one runs, and PTX of any earlier one."""
    if not archs:
        return True
    for kind, number in (match.groups() for a in archs if (match := re.match(r"(sm|compute)_(\d+)", a))):
        built = int(number[:-1]), int(number[-1])
        if built <= (major, minor) and (kind == "compute" or built[0] == major):
            return True
    return False


def _nvcc(capability: list[int] | None) -> Finding:
    path = shutil.which("nvcc")
    if path is None:
        cure = "Install the CUDA toolkit, or put its bin folder into PATH"
        return Finding("nvcc", "warn", "not in PATH: CUDA C++ programs cannot be built", cure)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    release = re.search(r"release ([\d.]+)", done.stdout)
    what = f"{path}, release {release[1] if release else 'unknown'}"
    known = subprocess.run([path, "--list-gpu-arch"], capture_output=True, text=True, timeout=30, check=False).stdout
    if capability and known and f"compute_{capability[0]}{capability[1]}" not in known.split():
        text = f"{what}, does not know compute capability {capability[0]}.{capability[1]}"
        return Finding("nvcc", "fail", text, "Install a newer CUDA toolkit, and put its bin folder into PATH")
    return Finding("nvcc", "ok", what)


def _counters() -> Finding:
    """Hardware counters, for profiles: a tool, and leave to use it."""
    tool = shutil.which("ncu")
    if tool is None:
        cure = "Install Nsight Compute for profiles with hardware counters"
        return Finding("gpu counters", "warn", "ncu is not in PATH: profiles have times only", cure)
    text = ""
    with suppress(OSError):
        text = Path("/proc/driver/nvidia/params").read_text()
    if "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0:
        cure = "The administrator can set NVreg_RestrictProfilingToAdminUsers=0 for the driver"
        return Finding("gpu counters", "warn", f"{tool}, but only root may read counters here", cure)
    return Finding("gpu counters", "ok", tool)
