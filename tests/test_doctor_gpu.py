"""What the doctor says of GPUs: one line where there is none, and a cure wherever something is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ksearch.doctor import Health, Line, can_evaluate, gpu
from ksearch.errors import EvaluatorError
from ksearch.evaluators.gpu import doctor, nvml
from ksearch.protocol import Lost
from ksearch.types import Evaluation, Ratio, Verdict

FOUND: dict[str, Any] = {
    "index": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "driver": "580.1", "temperature_c": 40, "power_w": 80.0,
    "sm_mhz": 345, "memory_mhz": 3201, "max_sm_mhz": 1980, "throttle_reasons": 1, "memory_bytes": 141 << 30,
    "free_bytes": 140 << 30, "users": [],
}  # fmt: skip
TORCH = {
    "torch": "2.11", "cuda": "13.0", "usable": True, "capability": [9, 0], "archs": ["sm_80", "sm_90"], "sum": 5050.0,
}  # fmt: skip
Look = Callable[..., dict[str, Line]]


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Look:
    """The lines about a machine with one GPU and these tools."""
    script(tmp_path / "nvcc", 'case $1 in --version) echo "release 13.0";; *) echo compute_90; echo compute_100;; esac')
    script(tmp_path / "ncu", "exit 0")
    script(tmp_path / "gcc", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor.metadata, "version", lambda _: "3.6.0")

    def ask(found: dict[str, Any] | None = None, torch: object = TORCH, **given: bool) -> dict[str, Line]:
        monkeypatch.setattr(nvml, "gpus", lambda: [{**FOUND, **(found or {})}])
        words = torch if isinstance(torch, str) else f"print({json.dumps(json.dumps(torch))})"
        monkeypatch.setattr(doctor, "_PROBE", words)
        lines = list(gpu.gpus(quick=True, **given))
        assert all(bool(line.cure) == (line.health is not Health.OK) for line in lines)
        return {line.name: line for line in lines}

    return ask


def test_a_machine_in_order_has_only_good_lines(look: Look) -> None:
    lines = look(wanted=True)
    assert {line.health for line in lines.values()} == {Health.OK}, lines
    assert set(lines) == {"gpu 0", "torch", "triton", "nvcc", "gpu counters"}
    assert "NVIDIA H200, driver 580.1, 140 of 141 GiB free, 345 of 1980 MHz" in lines["gpu 0"].detail
    assert "compute capability 9.0" in lines["torch"].detail


@pytest.mark.parametrize(
    ("found", "name", "words"),
    [
        ({"users": [77]}, "gpu 0 users", "processes [77] compute on it"),
        ({"free_bytes": 100 << 30}, "gpu 0 users", "somebody out of our sight"),
        ({"free_bytes": 1 << 30}, "gpu 0 memory", "only 1.0 GiB free"),
        ({"throttle_reasons": 0x44}, "gpu 0 clocks", "power cap, heat"),
        ({"temperature_c": 91}, "gpu 0 heat", "91 degrees"),
    ],
)
def test_what_spoils_times_is_named(look: Look, found: dict[str, Any], name: str, words: str) -> None:
    line = look(found)[name]
    assert line.health is Health.WARN
    assert words in line.detail


@pytest.mark.parametrize(
    ("torch", "words"),
    [
        ("import no_torch_here", "No module named 'no_torch_here'"),
        ({**TORCH, "usable": False}, "sees no GPU"),
        ({**TORCH, "sum": 5049.0}, "adds 1 to 100 to 5049.0"),
        ({**TORCH, "capability": [12, 0]}, "no code for compute capability 12.0: sm_80, sm_90"),
        ("import sys; sys.exit(1)", "no words"),
    ],
)
def test_a_torch_that_cannot_be_used_fails(look: Look, torch: object, words: str) -> None:
    line = look(torch=torch)["torch"]
    assert line.health is Health.FAIL
    assert words in line.detail
    assert can_evaluate([line])  # tasks on the CPU can be measured all the same
    assert not can_evaluate(list(look(torch=torch, wanted=True).values()))


@pytest.mark.parametrize(
    ("capability", "archs", "works"),
    [
        ((9, 0), ["sm_90"], True), ((8, 9), ["sm_80", "sm_86"], True), ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_80"], False), ((12, 0), ["sm_90", "compute_90"], True), ((10, 0), ["sm_100a"], True),
        ((9, 0), [], True),
    ],
)  # fmt: skip
def test_machine_code_runs_within_its_major_version_and_ptx_on_what_comes_later(capability, archs, works):
    assert doctor._supported(*capability, archs) is works


def test_tools_that_are_missing_or_old_are_named(look: Look, tmp_path: Path) -> None:
    script(tmp_path / "nvcc", 'case $1 in --version) echo "release 11.0";; *) echo compute_80;; esac')
    assert "does not know compute capability 9.0" in look()["nvcc"].detail
    for tool in ("nvcc", "ncu", "gcc"):
        (tmp_path / tool).unlink()
    lines = look()
    assert [lines[n].health for n in ("nvcc", "gpu counters", "triton")] == [Health.WARN] * 3
    assert "no C compiler" in lines["triton"].detail


def test_without_a_gpu_there_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvml, "gpus", list)
    monkeypatch.setattr(gpu, "_DRIVER", tmp_path / "none")
    monkeypatch.setenv("PATH", "/nowhere")
    (line,) = gpu.gpus()
    assert (line.health, "no NVIDIA driver" in line.detail) == (Health.OK, True)
    (line,) = gpu.gpus(wanted=True)
    assert (line.health, line.needed) == (Health.FAIL, True)
    (tmp_path / "none").touch()
    (line,) = gpu.gpus()
    assert (line.health, line.needed) == (Health.FAIL, False)
    assert "--gpus all" in line.cure


def evaluating(monkeypatch: pytest.MonkeyPatch, result: object, rungs: list[str]) -> list[Line]:
    record = {"sandbox": {"level": "namespaces", "rungs": rungs}}

    def evaluator(*_: object, **__: object) -> AbstractContextManager[object]:
        if isinstance(result, Exception):
            raise result
        return nullcontext(SimpleNamespace(evaluate=lambda _: SimpleNamespace(evaluation=result, record=record)))

    monkeypatch.setattr(nvml, "gpus", lambda: [FOUND])
    monkeypatch.setattr(gpu, "gpu_checks", list)
    monkeypatch.setattr(gpu, "LocalEvaluator", evaluator)
    return list(gpu.gpus())


def test_a_whole_evaluation_and_its_name_spaces_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = ["pid_ns", "net_ns", "ipc_ns", "uts_ns", "mount_ns", "landlock"]
    passed = Evaluation("p", Verdict.PASSED, latency_ms=1.0, speedup=Ratio(1.0, 0.99, 1.01))
    done, fence = evaluating(monkeypatch, passed, spaces)
    assert "passed" in done.detail
    assert (fence.health, "level namespaces" in fence.detail) == (Health.OK, True)
    _, lacking = evaluating(monkeypatch, passed, spaces[1:])
    assert (lacking.name, lacking.health) == ("gpu sandbox pid_ns", Health.WARN)
    for bad in (Lost("the oracle died"), Evaluation("p", Verdict.FORGED, "times"), EvaluatorError("no GPU")):
        assert evaluating(monkeypatch, bad, spaces)[0].health is Health.FAIL
