"""The machine that measures, as half a page for prompts. Read from /proc and /sys; x86 and Arm; standard library only.

Run it where the kernels run. What cannot be read is left out, never guessed.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Instruction sets that matter to someone who writes kernels, in the order shown; left: the kernel's name for them.
_X86_SIMD = {
    "sse2": "SSE2", "sse4_1": "SSE4.1", "sse4_2": "SSE4.2", "avx": "AVX", "f16c": "F16C", "fma": "FMA", "avx2": "AVX2",
    "avx_vnni": "AVX-VNNI", "avx512f": "AVX512F", "avx512dq": "AVX512DQ", "avx512bw": "AVX512BW",
    "avx512vl": "AVX512VL", "avx512vbmi": "AVX512VBMI", "avx512_vnni": "AVX512-VNNI", "avx512_bf16": "AVX512-BF16",
    "avx512_fp16": "AVX512-FP16", "amx_tile": "AMX", "amx_bf16": "AMX-BF16", "amx_int8": "AMX-INT8",
}  # fmt: skip
_ARM_SIMD = {
    "asimd": "NEON", "asimdhp": "NEON-FP16", "asimddp": "dot product", "bf16": "BF16", "i8mm": "I8MM",
    "sve": "SVE", "sve2": "SVE2", "sme": "SME",
}  # fmt: skip
_ARM_MAKERS = {
    "0x41": "Arm",
    "0x46": "Fujitsu",
    "0x4e": "NVIDIA",
    "0x51": "Qualcomm",
    "0x61": "Apple",
    "0xc0": "Ampere",
}
_ARM_CORES = {
    ("0x41", "0xd08"): "Cortex-A72", ("0x41", "0xd0b"): "Cortex-A76", ("0x41", "0xd0c"): "Neoverse N1",
    ("0x41", "0xd40"): "Neoverse V1", ("0x41", "0xd49"): "Neoverse N2", ("0x41", "0xd4f"): "Neoverse V2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CacheLevel:
    level: int
    kind: str  # Data, Unified
    bytes: int
    line_bytes: int = 64
    shared_by: int = 1  # cores


@dataclass(frozen=True, slots=True)
class Hardware:
    model: str
    architecture: str  # x86_64, aarch64
    cores: int  # usable by this process
    simd: tuple[str, ...] = ()
    caches: tuple[CacheLevel, ...] = ()
    clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    memory_bytes: int | None = None

    @property
    def vector_bytes(self) -> int | None:
        """The widest vector register that the flags promise; SVE's length is not among them."""
        if "AVX512F" in self.simd:
            return 64
        if "AVX" in self.simd:
            return 32
        return 16 if {"SSE2", "NEON"} & set(self.simd) else None

    @property
    def vector_registers(self) -> int:
        return 32 if "AVX512F" in self.simd or self.architecture == "aarch64" else 16


def read_hardware(root: Path = Path("/"), architecture: str | None = None, cores: int | None = None) -> Hardware:
    """What /proc and /sys say of this machine.

    Args:
        root: another root folder, to read a copy of another machine's files.
        architecture, cores: of that other machine.
    """
    info = _text(root / "proc/cpuinfo")
    fields = _fields(info)
    names = _X86_SIMD | _ARM_SIMD if not architecture else _ARM_SIMD if architecture.startswith("a") else _X86_SIMD
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    clock = _number(fields.get("cpu MHz"))
    top = _number(_text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
    memory = re.search(r"^MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return Hardware(
        model=_model(fields) or platform.processor() or "unknown CPU",
        architecture=architecture or platform.machine(),
        cores=cores or _usable_cores(),
        simd=tuple(shown for flag, shown in names.items() if flag in flags),
        caches=_caches(root / "sys/devices/system/cpu/cpu0/cache"),
        clock_mhz=clock,
        max_clock_mhz=top / 1000 if top else None,
        memory_bytes=int(memory[1]) * 1024 if memory else None,
    )


def _usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _fields(info: str) -> dict[str, str]:
    """The first core's fields of /proc/cpuinfo, and a board's own lines at the end of it."""
    found: dict[str, str] = {}
    for line in info.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _model(fields: Mapping[str, str]) -> str:
    if name := fields.get("model name") or fields.get("Processor"):
        numbers = [f"{k} {fields[k]}" for k in ("cpu family", "model") if k in fields]
        return f"{name} ({', '.join(numbers)})" if numbers else name
    maker, part = fields.get("CPU implementer", ""), fields.get("CPU part", "")
    core = _ARM_CORES.get((maker, part)) or (f"part {part}" if part else "")
    return " ".join(p for p in (_ARM_MAKERS.get(maker, ""), core) if p)


def _number(text: str | None) -> float | None:
    match = re.match(r"\d+(\.\d+)?", text or "")
    return float(match[0]) if match else None


def _caches(folder: Path) -> tuple[CacheLevel, ...]:
    found = []
    for index in sorted(folder.glob("index*")):
        size = re.match(r"(\d+)([KMG]?)", _text(index / "size"))
        level, kind = _number(_text(index / "level")), _text(index / "type")
        if size is None or level is None or kind == "Instruction":
            continue
        scale = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[2]]
        line = int(_number(_text(index / "coherency_line_size")) or 64)
        shared = _count(_text(index / "shared_cpu_list"))
        found.append(CacheLevel(int(level), kind, int(size[1]) * scale, line, shared))
    return tuple(sorted(found, key=lambda c: c.level))


def _count(cpus: str) -> int:
    """How many CPUs a list such as "0-3,8" names."""
    total = 0
    for piece in cpus.split(","):
        first, _, last = piece.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            total += int(last or first) - int(first) + 1
    return max(1, total)


# --- the sheet ---------------------------------------------------------------------------------------------------


def hardware_sheet(hardware: Hardware, ceilings: Mapping[str, Any] | None = None, threads: int = 1) -> str:
    """Half a page in plain text.

    Args:
        hardware: what `read_hardware` found.
        ceilings: measured on this machine, one thread: `sizes` (working sets, bytes), `bytes_per_s` (one for each,
            read and write traffic together), `operations_per_s` (float32, a multiply-add counts as two; of a GPU a
            mapping by type). Keys that are missing are left out of the sheet.
        threads: what the task grants.
    """
    cores, granted = _plural(hardware.cores, "usable core"), _plural(threads, "thread")
    lines = [f"CPU: {hardware.model}, {hardware.architecture}; {cores}, the task grants {granted}"]
    if hardware.simd:
        width = hardware.vector_bytes
        registers = f"; {hardware.vector_registers} vector registers of {width} bytes" if width else ""
        lines.append(f"SIMD: {', '.join(hardware.simd)}{registers}")
    lines += [f"Caches: {'; '.join(map(_cache, hardware.caches))}"] if hardware.caches else []
    clocks = [
        f"{mhz / 1000:.2f} GHz{what}"
        for mhz, what in ((hardware.clock_mhz, " when read"), (hardware.max_clock_mhz, " at most"))
        if mhz
    ]
    lines += [f"Clock: {', '.join(clocks)}"] if clocks else []
    lines += [f"Memory: {_size(hardware.memory_bytes)}"] if hardware.memory_bytes else []
    lines += _ceilings(ceilings or {})
    return "\n".join(lines)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cache(cache: CacheLevel) -> str:
    shared = f", shared by {cache.shared_by} cores" if cache.shared_by > 1 else " per core"
    kind = "d" if cache.kind == "Data" else ""
    return f"L{cache.level}{kind} {_size(cache.bytes)}{shared}, lines of {cache.line_bytes} bytes"


def _size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"


def _ceilings(ceilings: Mapping[str, Any]) -> list[str]:
    sizes: Sequence[int] = ceilings.get("sizes") or ()
    rates: Sequence[float] = ceilings.get("bytes_per_s") or ()
    lines = []
    if sizes and len(sizes) == len(rates):
        told = ", ".join(f"{_size(size)} {rate / 1e9:.3g}" for size, rate in zip(sizes, rates, strict=True))
        where = "" if isinstance(ceilings.get("operations_per_s"), Mapping) else "one thread, "
        state = "caches flushed before, as for timed calls" if ceilings.get("flushed") else "caches warm"
        lines.append(f"Measured memory traffic, {where}in GB/s by working set (read + write, {state}): {told}")
    operations = ceilings.get("operations_per_s")
    if isinstance(operations, Mapping):
        by_type = ", ".join(f"{name} {rate / 1e12:.3g}" for name, rate in operations.items())
        lines.append(f"Measured arithmetic, matrix products, in TFLOP/s by type (multiply-add = 2): {by_type}")
    elif operations:
        lines.append(f"Measured arithmetic, one thread, float32: {operations / 1e9:.3g} GFLOP/s (multiply-add = 2)")
        if sizes and len(sizes) == len(rates):
            balance = operations / rates[-1]
            lines.append(f"Balance: below {balance:.2g} operations per byte from memory, memory is what binds")
    return lines
