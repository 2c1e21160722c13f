"""The server as a process, over its pipes and over its port: the SDK's own client at the other end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ksearch.run import Run
from tests.agents.calling import PLAN, a_run, a_store, passing, source
from tests.agents.servers import COMMAND, TOKEN, http_server, over_http, over_stdio
from tests.cli.shell import shell_in

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip


def test_a_search_over_stdio(tmp_path: Path) -> None:
    """Two processes, one store: the second goes on where the first left off, and its leases are its own."""

    async def scenario() -> None:
        async with over_stdio(tmp_path, called="first") as agent:
            assert (await agent("next_request"))["request"] == "r0"
            async with over_stdio(tmp_path, called="second") as other:
                assert (await other("next_request"))["out"][0]["by"] == "first"
                assert "held by first" in await other.fails("submit_plan", request="r0", plan=PLAN)
        async with over_stdio(tmp_path, "--run", "a", called="second") as agent:
            assert (await agent("next_request"))["request"] == "r0"  # given back by the first, which has gone
            await agent("submit_plan", request="r0", plan=PLAN)
            await agent("next_request")
            await agent("submit_program", request="r1", source=source(passing(1)[0]))
            assert (await agent("evaluate"))["measured"][0]["verdict"] == "passed"
            assert (await agent("next_request"))["ended"]

    with a_store(tmp_path) as store:
        a_run(store, evaluations=1)
    asyncio.run(scenario())
    with a_store(tmp_path) as store:
        assert {e.model for e in Run(store, "a").log() if hasattr(e, "model")} == {"second"}


def test_agents_over_http_by_session_and_by_name(tmp_path: Path) -> None:
    one, two = passing(2)

    async def scenario(address: str) -> None:
        async with (
            over_http(address, mode="legacy") as alice,
            over_http(address, mode="legacy") as bob,
            over_http(address, "carol") as carol,
            over_http(address) as nobody,
        ):
            assert (await alice("next_request"))["request"] == "r0"
            assert (await alice("next_request"))["request"] == "r0"
            for other in (bob, carol, nobody):
                assert (await other("next_request"))["request"] is None
                assert "r0 is held by test-agent@" in await other.fails("submit_plan", request="r0", plan=PLAN)
            await alice("submit_plan", request="r0", plan=PLAN)
            assert (await nobody("next_request"))["request"] == "r1"
            assert (await carol("next_request"))["request"] == "r2"
            assert (await carol("next_request"))["request"] == "r2"
            assert "held by test-agent#" in await bob.fails("submit_program", request="r1", source=source(one))
            await nobody("submit_program", request="r1", source=source(one))
            await carol("submit_program", request="r2", source=source(two))
            found = await bob("evaluate")
            assert len(found["measured"]) == 2
            assert (await alice("best"))["verdict"] == "passed"

    with a_store(tmp_path) as store:
        a_run(store, evaluations=2, width=2)
    with http_server(tmp_path) as address:
        asyncio.run(scenario(address))
        _who_may_not_come_in(address)
    with a_store(tmp_path) as store:
        assert Run(store, "a").state.evaluated == 2


def _who_may_not_come_in(address: str) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    def status(body: bytes = json.dumps(INITIALIZE).encode(), **more: str) -> int:
        given = {**headers, **{name.replace("_", "-"): value for name, value in more.items()}}
        return httpx2.post(address, content=body, headers=given, timeout=20, trust_env=False).status_code

    assert status(**bearer) == 200
    assert status() == 401
    assert status(Authorization="Bearer wrong") == 401
    assert status(Authorization=f"Basic {TOKEN}") == 401
    assert status(**bearer, Host="evil.example") == 421
    assert status(**bearer, Origin="https://evil.example") == 403
    assert status(b" " * 5_000_000, **bearer) == 413
    assert httpx2.get(address, timeout=20, trust_env=False).status_code == 401


def test_nothing_but_protocol_on_stdout_and_a_clean_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *COMMAND, "--store", str(tmp_path / "runs.db")],
        input=json.dumps(INITIALIZE) + "\n", capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1]
    assert answers[0]["result"]["serverInfo"]["name"] == "ksearch"
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--http", "--port", "1", "--host", "192.0.2.1"], 2, "Name another --host or --port"),
        (["--run", "absent", "--http"], 3, "holds no run 'absent'"),
        (["--task", "/nowhere", "--http"], 2, "no such task folder"),
    ],
)
def test_a_server_that_cannot_start_says_why(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    assert says in shell_in(tmp_path).fails("mcp", *arguments, code=code)


def test_a_token_that_could_be_guessed_is_refused(tmp_path: Path) -> None:
    assert "at least 16" in shell_in(tmp_path).fails("mcp", "--http", code=2, KSEARCH_MCP_TOKEN="secret")


def test_ctrl_c_ends_an_http_server_and_gives_back_what_its_agents_held(tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        a_run(store)
    with subprocess.Popen(
        [sys.executable, *COMMAND, "--http", "--store", str(tmp_path / "runs.db")],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "KSEARCH_MCP_TOKEN": ""},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().removeprefix("agents: ").strip()
        token = process.stderr.readline().removeprefix("token: ").strip()
        assert len(token) > 30

        async def take() -> None:
            async with over_http(address, "alice", token=token) as agent:
                assert (await agent("next_request"))["request"] == "r0"

        asyncio.run(take())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert "Traceback" not in err
    with a_store(tmp_path) as store:
        assert Run(store, "a").state.pending["r0"].lease is None
