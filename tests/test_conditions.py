"""What a machine shows of its clocks, load and heat, and what speaks against timing on it."""

from __future__ import annotations

from pathlib import Path

from ksearch.conditions import Conditions, disturbances, read_conditions


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_all_that_a_talkative_machine_shows(tmp_path: Path) -> None:
    for core, governor in enumerate(("powersave", "performance")):
        put(tmp_path, f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", f"{governor}\n")
    put(tmp_path, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "41000\n")
    put(tmp_path, "sys/class/thermal/thermal_zone1/temp", "91500\n")
    put(tmp_path, "proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2596.134\nprocessor : 1\ncpu MHz\t\t: 800.000\n")
    put(tmp_path, "proc/loadavg", "3.42 2.48 1.48 5/118 22683\n")
    found = read_conditions(tmp_path)
    assert found == Conditions("performance, powersave", (2596.134, 800.0), 3.42, 2.48, 91.5, "on")
    assert [line.split()[1] for line in disturbances(found, 2)] == ["clock", "3.4", "degrees"]


def test_a_machine_that_shows_nothing_disturbs_nothing(tmp_path: Path) -> None:
    assert read_conditions(tmp_path) == Conditions()
    assert disturbances(Conditions(), 8) == []
