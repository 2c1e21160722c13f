"""Prompts of a run with a task: the machine as the log tells it, and settings that reach the rendering."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ksearch.config import load
from ksearch.holders import this_process
from ksearch.prompts import Prompt
from ksearch.protocol import Plan, Request
from ksearch.run import Run
from ksearch.service.beginning import begin, setting
from ksearch.service.machine import machine_of
from ksearch.service.prompting import _sheet, render
from ksearch.store import open_store
from ksearch.tasks import find_task, load_task
from ksearch.types import Action, Insert

FACTS: dict[str, Any] = {
    "device": "Test CPU",
    "hardware": {
        "model": "Test CPU", "architecture": "x86_64", "cores": 2, "simd": ["AVX2"], "clock_mhz": None,
        "caches": [{"level": 1, "kind": "Data", "bytes": 32768, "line_bytes": 64, "shared_by": 1}],
        "max_clock_mhz": None, "memory_bytes": 8 << 30,
    },
    "threads": 1,
    "compilers": {"cpp": {"version": "g++ 12.2", "command": "g++ -O3 -march=native"}},
    "ceilings": {"sizes": [1 << 27], "bytes_per_s": [20e9], "operations_per_s": 100e9, "measured_at": 0.0},
    "workloads": [
        {"name": "tall", "bytes_moved": 12e6, "operations": 3e6, "floor_ms": 0.096, "binds": "memory",
         "baseline_ms": 6.0},
        {"name": "wide", "bytes_moved": 0.0, "operations": 0.0, "floor_ms": None, "binds": "", "baseline_ms": None},
    ],
}  # fmt: skip


def prompts(tmp_path: Path, machine: str | None, **flags: Any) -> tuple[Prompt, Prompt]:
    """The first plan's and the first write's, of a run that was begun and closed: `ask` comes later, elsewhere."""
    with open_store(str(tmp_path / "runs.db")) as store:
        begin(store, "r", load({"task": "gemm", **flags}, env={}), machine)
    with open_store(str(tmp_path / "runs.db")) as store:
        run, found, holder = Run(store, "r"), [], this_process("test")
        for _ in range(2):
            request = run.take(holder)
            assert isinstance(request, Request)
            prompt = render(run, run.state, request, setting(run.state))
            assert prompt
            found.append(prompt)
            run.tell(request.id, Plan((Insert("root", Action("Pack B")),)) if len(found) == 1 else _lost())
    return found[0], found[1]


def _lost() -> Any:
    from ksearch.protocol import Lost

    return Lost("enough")


def test_the_first_plan_sees_baseline_floor_compiler_and_flags_without_an_evaluator(tmp_path: Path) -> None:
    for prompt in prompts(tmp_path, json.dumps(FACTS)):
        for wanted in (
            "CPU: Test CPU, x86_64",
            "Compiler for C++: g++ 12.2; g++ -O3 -march=native",
            "tall: baseline 6 ms (2 GB/s, 0.5 GFLOP/s); floor 0.096 ms, set by memory: 12 MB at 125 GB/s; from memory, "
            "at the 20 GB/s of the largest working set, 0.6 ms",
            "wide: nothing known",
        ):
            assert wanted in prompt.stable_text


def test_a_run_begun_without_an_evaluator_shows_this_machine_and_no_times(tmp_path: Path) -> None:
    plan, _ = prompts(tmp_path, None)
    assert "CPU: " in plan.stable_text
    assert "Before the search" not in plan.text


def test_a_gpus_ceilings_are_told_by_type() -> None:
    speeds = {"float16": 9e14, "float32": 5e13}
    facts = {**FACTS, "device": "GPU X", "ceilings": {**FACTS["ceilings"], "operations_per_s": speeds}}
    found = machine_of({"machine": json.dumps(facts)})
    assert found
    assert found.sheet().startswith("GPU: GPU X\n")
    assert "in TFLOP/s by type (multiply-add = 2): float16 900, float32 50" in found.sheet()


def test_the_guide_says_nothing_of_what_only_the_inputs_are_made_with(tmp_path: Path) -> None:
    _, write = prompts(tmp_path, None)  # gemm's reference makes awkward inputs by np.exp and computes without it
    assert "Horizontal reductions" in write.text
    assert "exp within a tolerance" not in write.text


def test_settings_say_how_long_prompts_may_be_and_in_which_form(tmp_path: Path) -> None:
    _, brief = prompts(tmp_path, None, brief_prompts=True)
    assert "# Change to make" in brief.text
    (tmp_path / "second").mkdir()
    plan, write = prompts(tmp_path / "second", None, prompt_tokens=4000)
    assert max(plan.tokens, write.tokens) <= 4000


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False)])
def test_a_switch_can_be_set_by_a_variable(text: str, value: bool) -> None:
    assert load({}, env={"KSEARCH_BRIEF_PROMPTS": text}).config.brief_prompts is value


GPU_FACTS = {
    **FACTS, "device": "NVIDIA H200", "compilers": {"cuda": {"version": "nvcc 13.0", "command": "nvcc -O3"}},
    "ceilings": {**FACTS["ceilings"], "operations_per_s": {"float16": 7.5e14, "float32": 5e13}},
    "gpu": {"capability": [9, 0], "multiprocessors": 132, "l2_bytes": 50 << 20, "total_bytes": 140 << 30,
            "torch": "2.11.0", "cuda": "13.0"},
}  # fmt: skip


def test_on_a_gpu_planner_and_writer_are_told_what_is_known_of_it_and_the_writer_how_to_write(tmp_path: Path) -> None:
    plan, write = prompts(tmp_path, json.dumps(GPU_FACTS), task="trimul_gpu")
    for prompt in (plan, write):
        text = prompt.stable_text
        assert "GPU: NVIDIA H200, compute capability 9.0, 132 multiprocessors, L2 50 MiB, 140 GiB; torch 2.11.0" in text
        assert text.index("Measured memory traffic") < text.index("Known of Hopper")
        assert "What usually pays there:" in text
        assert prompt.tokens < 12_000  # of 24,000: room for programs and trajectories
    titles = ("# Writing fast Triton here", "# Writing fast CUDA C++ here", "# Writing fast PyTorch here")
    found = [write.text.index(title) for title in titles]
    assert found == sorted(found)
    assert not any(title in plan.text for title in titles)
    _, one = prompts(_folder(tmp_path, "second"), json.dumps(GPU_FACTS), task="trimul_gpu", language="cuda")
    assert [title in one.text for title in titles] == [False, True, False]


def test_a_small_budget_keeps_what_was_measured_and_cuts_what_is_only_known(tmp_path: Path) -> None:
    plan, write = prompts(tmp_path, json.dumps(GPU_FACTS), task="trimul_gpu", prompt_tokens=8_000)
    assert max(plan.tokens, write.tokens) <= 8_000
    assert "GPU: NVIDIA H200" in plan.text
    assert "three products of 16-bit parts" not in plan.text


def test_a_task_may_put_its_own_words_in_place_of_the_public_facts(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "gemm")
    for path in find_task("gemm").iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / "machine.md").write_text("Our cluster's cores are slow.\n")
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text.replace("[axes]", '[guides]\nhardware = "machine.md"\n\n[axes]', 1))
    _, write = prompts(_folder(tmp_path, "runs"), json.dumps(FACTS), task=str(folder))
    assert "Our cluster's cores are slow." in write.stable_text
    assert "Known of" not in write.text
    assert "CPU: Test CPU" in write.text
    _, usual = prompts(_folder(tmp_path, "usual"), json.dumps(FACTS))
    assert "Known of x86 with AVX2" in usual.stable_text


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def test_what_is_measured_elsewhere_is_told_by_the_results_and_never_by_this_machine() -> None:
    task = load_task(find_task("trimul_gpu"))
    first = _sheet(task, None, "")
    assert "CPU" not in first
    later = _sheet(task, None, "NVIDIA H200")
    assert later.startswith("GPU: NVIDIA H200")
    assert "wgmma" in later
