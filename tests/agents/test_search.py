"""An agent completes a search on a bundled task over stdio, with real builds, checks and times."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ksearch.run import Run
from ksearch.store import open_store
from ksearch.tasks import load_task
from tests.agents.calling import Agent
from tests.agents.servers import COMMAND, TOKEN, over_http, over_stdio
from tests.cli.shell import shell_in

TASK = "rmsnorm_residual"
PLAN = {
    "assessment": "Both passes over a row are bound by the latency of one scalar sum.",
    "edits": [
        {"op": "insert", "parent": "root", "title": "Eight lanes and four independent sums", "difficulty": 2,
         "value": 0.9, "predicted_speedup": 1.5},
    ],
}  # fmt: skip


def written() -> list[str]:
    """What the agent writes, in turn: a mistake, the same mended, and a variant."""
    right = next(iter(load_task(TASK).strong.values())).sources
    text = next(iter(right.values()))
    return [re.sub(r"epsilon = 1e-6f", "epsilon = 1e6f", text), text, f"// the same again, to try for luck\n{text}"]


async def follow(agent: Agent, begun: dict[str, Any]) -> list[dict[str, Any]]:
    """Do what the answers say comes next, until the run has ended; return the verdicts."""
    drafts, verdicts, said = written(), [], begun
    for _ in range(30):
        tool = re.match(r"([a-z_]+)\(", said["next"])
        assert tool, said
        match tool[1]:
            case "next_request":
                said = await agent("next_request", run=begun["run"])
            case "submit_plan":
                plan = PLAN if said["asked_because"] == "start" else {"assessment": "Nothing to add.", "edits": []}
                said = await agent("submit_plan", run=begun["run"], request=said["request"], plan=plan)
            case "submit_program":
                said = await agent("submit_program", run=begun["run"], request=said["request"], source=drafts.pop(0))
            case "evaluate":
                said = await agent("evaluate", run=begun["run"], wait_s=120)
                verdicts += said["measured"]
            case "best":
                return verdicts
    raise AssertionError("the search does not end")


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_an_agent_completes_a_search_to_a_passing_faster_program(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with over_stdio(tmp_path) as agent:
            begun = await agent("start_run", task=TASK, name="a", evaluations=2, stagnation=3)
            assert "not_measured_here" not in begun
            _, prompt = await agent.both("next_request")
            assert "floor" in prompt  # the machine was looked at before the run began
            wrong, right = await follow(agent, begun)
            assert wrong["verdict"] == "wrong_values"
            assert wrong["reason"]
            assert (right["verdict"], right["confirmed"]) == ("passed", True)
            assert right["speedup"]["low"] > 1
            best, sources = await agent.both("best")
            assert best["program"] == right["program"]
            assert "constexpr float epsilon = 1e-6f" in sources
            told = await agent("verdict")
            assert {w["verdict"] for w in told["workloads"]} == {"passed"}
            assert all(w["floor_ms"] < w["latency_ms"] for w in told["workloads"] if "latency_ms" in w)

    asyncio.run(scenario())
    shell = shell_in(tmp_path)
    shell("best", "a", "-o", "out")
    assert (tmp_path / "out" / "kernel.cpp").read_text() == written()[1]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_server_killed_while_it_measures_loses_nothing(tmp_path: Path) -> None:
    async def until_it_measures(address: str, process: subprocess.Popen[str]) -> None:
        async with over_http(address, "alice") as agent:
            await agent("start_run", task=TASK, name="a", evaluations=1)
            await agent("next_request")
            await agent("submit_plan", request="r0", plan=PLAN)
            await agent("next_request")
            await agent("submit_program", request="r1", source=written()[1])
            seen.update(await agent("evaluate", wait_s=3))
            process.send_signal(signal.SIGKILL)

    seen: dict[str, Any] = {}

    with subprocess.Popen(
        [sys.executable, *COMMAND, "--http", "--store", str(tmp_path / "runs.db")],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, env={**os.environ, "KSEARCH_MCP_TOKEN": TOKEN},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("agents: ").strip()
        with contextlib.suppress(Exception):  # the client finds nobody to say good-bye to
            asyncio.run(until_it_measures(address, process))
    assert process.returncode == -signal.SIGKILL
    assert seen["waiting"] == 1
    assert seen["now"].startswith("measuring program")
    assert seen["next"] == 'evaluate(run="a")'

    async def again() -> None:
        async with over_stdio(tmp_path) as agent:
            found = await agent("evaluate", wait_s=120)
            assert found["measured"][0]["verdict"] == "passed"

    asyncio.run(again())
    with open_store(tmp_path / "runs.db") as store:
        assert Run(store, "a").state.evaluated == 1


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_search_with_an_agents_command_line_as_the_model(tmp_path: Path) -> None:
    """`--model command:claude` from prompt to verdict, with what it cost; the command is a fake."""
    fake = tmp_path / "claude"
    fake.write_text(
        f"#!{sys.executable}\nimport json, sys\nprompt = sys.stdin.read()\n"
        f"plan, program = {PLAN!r}, {'```cpp' + chr(10) + written()[1] + '```'!r}\n"
        "assert 'RMSNorm' in prompt\n"
        "body = {'type': 'result', 'subtype': 'success', 'is_error': False, 'total_cost_usd': 0.25,\n"
        "        'stop_reason': 'end_turn', 'usage': {'input_tokens': 1000, 'output_tokens': 500}}\n"
        "body |= {'structured_output': plan} if '--json-schema' in sys.argv else {'result': program}\n"
        "print(json.dumps(body))\n"
    )
    fake.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    shell = shell_in(tmp_path)
    asked = ("run", "--task", TASK, "--model", "command:claude", "--evaluations", "1", "--usd", "2", "--name", "a")
    assert "passed" in shell(*asked, **path)
    status = shell.json("status", "a")
    assert status["speedup"]["low"] > 1
    assert (status["tokens"], status["usd"], status["unpriced_calls"]) == (3000, 0.5, 0)
