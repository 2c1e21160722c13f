"""Agents that call tools, in this process or another, and programs to hand over."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import TextContent

from ksearch.config import load
from ksearch.mcp.house import House, Rules
from ksearch.mcp.identity import Identities
from ksearch.mcp.server import make_server
from ksearch.service.beginning import begin
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator
from ksearch.types import Program, Verdict

PLAN = {
    "assessment": "two ideas",
    "edits": [
        {"op": "insert", "name": "a", "parent": "root", "title": "Tile", "value": 0.9, "predicted_speedup": 1.5},
        {"op": "insert", "parent": "a", "title": "Vectorise", "value": 0.8},
    ],
}


@dataclass(frozen=True)
class Agent:
    """A client, and what it says about itself with each call."""

    client: Client
    name: str = ""

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed; return its facts."""
        return (await self.both(tool, **arguments))[0]

    async def both(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        """Facts, and the text after them."""
        failed, texts = await self._call(tool, arguments)
        assert not failed, texts
        facts = json.loads(texts[0], parse_constant=_not_strict)
        assert isinstance(facts, dict)
        return facts, "\n".join(texts[1:])

    async def fails(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail; return its one message."""
        failed, texts = await self._call(tool, arguments)
        assert failed, texts
        assert len(texts) == 1
        return texts[0]

    async def _call(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, list[str]]:
        if self.name and tool not in (
            "list_runs",
            "start_run",
            "evaluate",
            "status",
            "tree",
            "best",
            "verdict",
            "read",
        ):
            arguments = {**arguments, "agent": self.name}
        result = await self.client.call_tool(tool, arguments)
        return bool(result.is_error), [part.text for part in result.content if isinstance(part, TextContent)]


def _not_strict(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@contextmanager
def a_store(folder: Path) -> Iterator[Store]:
    with open_store(folder / "runs.db") as store:
        yield store


def a_run(store: Store, name: str = "a", *, task: str | None = "softmax", model: str = "fake", **settings: Any) -> None:
    """A run whose programs are measured by drawing, so that nothing has to be built."""
    begin(store, name, load({"task": task, "model": model, **settings}, env={}))


@asynccontextmanager
async def an_agent(store: Store, rules: Rules | None = None, *, mode: str = "auto") -> AsyncIterator[Agent]:
    """One agent with a server of its own in this process, as over stdio."""
    house = House(store, rules or Rules())
    try:
        async with Client(make_server(house, Identities(shared=False)), mode=mode) as client:
            yield Agent(client)
    finally:
        house.close()


def source(number: int) -> str:
    return f'extern "C" void run(const float* x, float* y, long rows, long cols) {{ y[0] = x[0] * {number}; }}\n'


def program(number: int) -> Program:
    return Program({"kernel.cpp": source(number)}, "kernel.cpp::run", "cpp")


def passing(count: int) -> list[int]:
    """Numbers whose programs the fake evaluator lets pass."""
    return [n for n in range(60) if _verdict(n) is Verdict.PASSED][:count]


def failing(count: int) -> list[int]:
    return [n for n in range(60) if _verdict(n) is not Verdict.PASSED][:count]


def _verdict(number: int) -> Verdict:
    measured = FakeEvaluator().evaluate(program(number), [])
    return measured.evaluation.verdict  # type: ignore[union-attr]
