"""What the NVIDIA driver tells about a GPU: clocks, temperature, memory, users. By ctypes; changes nothing.

Works without CUDA, in any process, so the coordinator and `ksearch doctor` can use it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint),
    ]  # fmt: skip


@contextmanager
def library() -> Iterator[Any]:
    """The driver's library, or None where there is no driver."""
    try:
        found = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        yield None
        return
    if found.nvmlInit_v2() != 0:
        yield None
        return
    try:
        yield found
    finally:
        found.nvmlShutdown()


def gpus() -> list[dict[str, Any]]:
    """Every GPU of this machine as it is now; empty where there is none, or no driver."""
    with library() as nvml:
        if nvml is None:
            return []
        count = ctypes.c_uint()
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        return [_one(nvml, index) for index in range(count.value)]


def state(uuid: str) -> dict[str, Any]:
    """The GPU with this UUID as it is now; empty where nobody knows it."""
    return next((found for found in gpus() if found["uuid"] == uuid), {})


def _one(nvml: Any, index: int) -> dict[str, Any]:
    device = ctypes.c_void_p()
    nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device))
    return {
        "index": index,
        "name": _text(nvml.nvmlDeviceGetName, device),
        "uuid": _text(nvml.nvmlDeviceGetUUID, device),
        "driver": _text(nvml.nvmlSystemGetDriverVersion),
        "temperature_c": _number(nvml.nvmlDeviceGetTemperature, device, 0),
        "power_w": _scaled(_number(nvml.nvmlDeviceGetPowerUsage, device)),
        **{name: _number(nvml.nvmlDeviceGetClockInfo, device, kind) for name, kind in _CLOCKS.items()},
        "max_sm_mhz": _number(nvml.nvmlDeviceGetMaxClockInfo, device, 1),
        "throttle_reasons": _wide(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, device),
        **_memory(nvml, device),
        "users": _users(nvml, device),
    }


def _text(call: Any, *given: Any) -> str:
    text = ctypes.create_string_buffer(128)
    return text.value.decode("utf-8", "replace") if call(*given, text, ctypes.c_uint(128)) == 0 else ""


def _number(call: Any, *given: Any) -> int | None:
    found = ctypes.c_uint()
    words = [ctypes.c_int(g) if isinstance(g, int) else g for g in given]
    return found.value if call(*words, ctypes.byref(found)) == 0 else None


def _wide(call: Any, device: Any) -> int | None:
    found = ctypes.c_ulonglong()
    return found.value if call(device, ctypes.byref(found)) == 0 else None


def _scaled(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _memory(nvml: Any, device: Any) -> dict[str, int]:
    found = _Memory()
    if nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(found)) != 0:
        return {}
    return {"memory_bytes": found.total, "free_bytes": found.free}


def _users(nvml: Any, device: Any) -> list[int] | None:
    """Process ids that compute on it, as far as we may see them."""
    count, found = ctypes.c_uint(64), (_Process * 64)()
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), found) != 0:
        return None
    return [p.pid for p in found[: count.value]]
