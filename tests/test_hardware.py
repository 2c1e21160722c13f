from __future__ import annotations

from pathlib import Path

import pytest

from ksearch.hardware import Hardware, hardware_sheet, read_hardware

X86 = """processor\t: 0
model name\t: Intel(R) Xeon(R) Test CPU
cpu family\t: 6
model\t\t: 143
cpu MHz\t\t: 2000.000
flags\t\t: fpu sse2 sse4_1 sse4_2 avx f16c fma avx2 avx512f avx512bw amx_bf16

processor\t: 1
model name\t: another
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm asimdhp asimddp sve bf16 i8mm
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40
"""
CEILINGS = {"sizes": [32768, 1 << 27], "bytes_per_s": [80e9, 20e9], "operations_per_s": 100e9, "measured_at": 0.0}


def machine(root: Path, cpuinfo: str) -> Path:
    (root / "proc").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(cpuinfo)
    (root / "proc/meminfo").write_text("MemTotal:       16777216 kB\n")
    cpu = root / "sys/devices/system/cpu/cpu0"
    for i, (level, kind, size, shared) in enumerate(
        [
            ("1", "Data", "48K", "0"),
            ("1", "Instruction", "32K", "0"),
            ("2", "Unified", "2M", "0"),
            ("3", "Unified", "30720K", "0-3,8"),
        ]
    ):
        folder = cpu / f"cache/index{i}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / name).write_text(text + "\n")
        (folder / "coherency_line_size").write_text("64\n")
    (cpu / "cpufreq").mkdir()
    (cpu / "cpufreq/cpuinfo_max_freq").write_text("3800000\n")
    return root


def test_an_x86_machine_is_read(tmp_path: Path) -> None:
    found = read_hardware(machine(tmp_path, X86), "x86_64", cores=4)
    assert found.model == "Intel(R) Xeon(R) Test CPU (cpu family 6, model 143)"
    assert found.simd == ("SSE2", "SSE4.1", "SSE4.2", "AVX", "F16C", "FMA", "AVX2", "AVX512F", "AVX512BW", "AMX-BF16")
    assert (found.vector_bytes, found.vector_registers) == (64, 32)
    assert [(c.level, c.bytes, c.shared_by) for c in found.caches] == [(1, 49152, 1), (2, 2 << 20, 1), (3, 30 << 20, 5)]
    assert (found.clock_mhz, found.max_clock_mhz, found.memory_bytes) == (2000.0, 3800.0, 16 << 30)


def test_an_arm_machine_is_read(tmp_path: Path) -> None:
    found = read_hardware(machine(tmp_path, ARM), "aarch64", cores=2)
    assert found.model == "Arm Neoverse V1"
    assert found.simd == ("NEON", "NEON-FP16", "dot product", "BF16", "I8MM", "SVE")
    assert (found.vector_bytes, found.vector_registers) == (16, 32)
    assert found.clock_mhz is None


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    sheet = hardware_sheet(read_hardware(tmp_path, "riscv64", cores=1))
    assert sheet.count("\n") == 0
    assert "riscv64; 1 usable core" in sheet
    assert "None" not in sheet


def test_the_sheet_is_half_a_page_with_measured_ceilings(tmp_path: Path) -> None:
    sheet = hardware_sheet(read_hardware(machine(tmp_path, X86), "x86_64", cores=4), CEILINGS)
    assert "L1d 48 KiB per core, lines of 64 bytes; L2 2 MiB per core" in sheet
    assert "L3 30 MiB, shared by 5 cores" in sheet
    assert "32 vector registers of 64 bytes" in sheet
    assert "2.00 GHz when read, 3.80 GHz at most" in sheet
    assert "32 KiB 80, 128 MiB 20" in sheet
    assert "100 GFLOP/s" in sheet
    assert "below 5 operations per byte" in sheet
    assert sheet.count("\n") < 12


@pytest.mark.parametrize("missing", ["sizes", "bytes_per_s", "operations_per_s"])
def test_ceilings_that_are_missing_are_left_out(missing: str) -> None:
    sheet = hardware_sheet(Hardware("a CPU", "x86_64", 1), {k: v for k, v in CEILINGS.items() if k != missing})
    assert ("GB/s" in sheet) == (missing == "operations_per_s")
    assert "Balance" not in sheet


def test_this_machine_can_be_read() -> None:
    found = read_hardware()
    assert found.cores >= 1
    assert hardware_sheet(found).startswith("CPU: ")
