"""`ksearch mcp` as a real process, and agents at the other end of its pipes or its port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from tests.agents.calling import Agent

COMMAND = ["-m", "ksearch.cli.main", "mcp"]
TOKEN = "a-token-of-a-test"


@asynccontextmanager
async def over_stdio(folder: Path, *arguments: str, called: str = "test-agent") -> AsyncIterator[Agent]:
    """An agent with a server of its own, which ends with it."""
    given = [*COMMAND, "--store", str(folder / "runs.db"), *arguments]
    server = StdioServerParameters(command=sys.executable, args=given, cwd=folder, env={"HOME": str(folder)})
    async with Client(server, client_info=Implementation(name=called, version="1")) as client:
        yield Agent(client)


@contextmanager
def http_server(folder: Path, *arguments: str) -> Iterator[str]:
    """The address of a server that several agents share."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KSEARCH_", "XDG_"))}
    with subprocess.Popen(
        [sys.executable, *COMMAND, "--http", "--store", str(folder / "runs.db"), *arguments],
        cwd=folder, env={**kept, "HOME": str(folder), "KSEARCH_MCP_TOKEN": TOKEN}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("agents: http://127.0.0.1:"), (line, process.stderr and process.stderr.read())
            yield line.removeprefix("agents: ").strip()
        finally:
            process.terminate()
            process.communicate(timeout=20)


@asynccontextmanager
async def over_http(address: str, name: str = "", *, mode: str = "auto", token: str = TOKEN) -> AsyncIterator[Agent]:
    """An agent at a server's port. `mode` legacy: with a session, as clients before 2026 speak."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False) as http:
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, mode=mode, client_info=Implementation(name="test-agent", version="1")) as client:
            yield Agent(client, name)
