"""An agent whose machine cannot measure a task is handed no evaluation, and is told who can."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ksearch.evaluators.gpu import nvml
from ksearch.mcp.house import Rules
from ksearch.run import Run
from tests.agents.calling import PLAN, Agent, a_run, a_store, an_agent, source

KERNEL = "import torch\n\n\ndef run(*tensors):\n    pass\n"


def play(folder: Path, rules: Rules, task: str | None, code: str, says: str) -> None:
    async def scenario() -> None:
        with a_store(folder) as store:
            a_run(store, task=task, model="agent")
            async with an_agent(store, rules) as agent:
                await _write_one(agent, code)
                refused = await agent.fails("evaluate")
                assert says in refused
                assert "ksearch resume a --stay" in refused
                assert 'Next: next_request(run="a", wait_s=45)' in refused
                asked = await agent("next_request")
                assert (asked["request"], asked["why"]) == (None, "evaluate is wanted")
                assert says in asked["not_measured_here"]
                assert says in (await agent("status"))["not_measured_here"]
                state = Run(store, "a").state
                assert not state.pending, "no evaluation was taken"

    asyncio.run(scenario())


async def _write_one(agent: Agent, code: str) -> None:
    await agent("next_request")
    await agent("submit_plan", request="r0", plan=PLAN)
    await agent("next_request")
    told = await agent("submit_program", request="r1", source=code)
    assert "measured elsewhere" in told["next"]


def test_a_gpu_task_on_a_machine_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "gpus", list)
    play(tmp_path, Rules(), "trimul_gpu", KERNEL, "GPU")


def test_a_server_that_is_not_to_measure(tmp_path: Path) -> None:
    play(tmp_path, Rules(measures=False), "softmax", source(1), "--no-measure")


def test_a_run_without_a_task(tmp_path: Path) -> None:
    play(tmp_path, Rules(), None, source(1), "no task")


def test_tasks_that_cannot_be_measured_here_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "gpus", list)

    async def scenario() -> None:
        with a_store(tmp_path) as store:
            async with an_agent(store) as agent:
                tasks = {row["task"]: row for row in (await agent("list_runs"))["tasks"]}
                assert tasks["softmax"]["measured_here"]
                assert not tasks["trimul_gpu"]["measured_here"]
                assert "GPU" in tasks["trimul_gpu"]["because"]
                begun = await agent("start_run", task="trimul_gpu", name="g")
                assert "GPU" in begun["not_measured_here"]

    asyncio.run(scenario())
