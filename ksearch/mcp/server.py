"""The server: tools, resources and a prompt, registered with the SDK."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import resources
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations

import ksearch
from ksearch.errors import KSearchError
from ksearch.mcp.house import House
from ksearch.mcp.identity import Identities
from ksearch.mcp.looking import Looking
from ksearch.mcp.telling import explain
from ksearch.mcp.tools import Tools

LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def instructions() -> str:
    """The skill: how an agent carries on a search with these tools."""
    return resources.files("ksearch.mcp").joinpath("SKILL.md").read_text(encoding="utf-8")


BRIEF = """\
K-Search finds fast, correct kernels on a search tree. You plan and write; this server measures; nothing you claim is
believed. Loop: next_request gives you one piece of work with its prompt. A plan: answer with submit_plan. A write:
answer with submit_program, then call evaluate, and read its verdict before the next request. Every answer begins with
a JSON object, whose `next` is the call that is wanted now. Stop when a call says the run has ended. Do not measure
programs yourself, do not edit the task. The resource ksearch://skill holds the whole guide.
"""


_LOOKING = ("list_runs", "status", "tree", "best", "verdict", "read")
_ACTING = (
    "start_run", "next_request", "submit_plan", "submit_program", "submit_programs", "submit_unasked", "evaluate",
    "give_back", "pause", "resume",
)  # fmt: skip


def make_server(house: House, identities: Identities) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "ksearch", title="K-Search", version=ksearch.__version__, instructions=BRIEF, log_level="WARNING"
    )
    tools = Tools(house, identities)
    for names, hints in ((_LOOKING, LOOKS), (_ACTING, ACTS)):
        for name in names:
            tool = getattr(tools, name)
            description = inspect.cleandoc(tool.__doc__ or "")
            server.tool(description=description, annotations=hints, structured_output=False)(_advising(tool))
    _add_resources(server, Looking(house))
    return server


def _add_resources(server: MCPServer[Any], looking: Looking) -> None:
    def text(uri: str) -> str:
        try:
            return looking.text(uri)
        except KSearchError as error:
            raise ResourceNotFoundError(explain(error)) from error

    @server.resource("ksearch://skill", mime_type="text/markdown", description="How to carry on a search.")
    def skill() -> str:
        return instructions()

    @server.resource("ksearch://{run}/tree", description="The search tree.", mime_type="text/plain")
    def tree(run: str) -> str:
        return text(f"ksearch://{run}/tree")

    for kind, what in (
        ("prompt", "The prompt of a request."),
        ("program", "A program's sources."),
        ("verdict", "All about one evaluation, as JSON."),
        ("node", "The story of a node."),
    ):
        address = f"ksearch://{{run}}/{kind}/{{id}}"
        server.resource(address, name=kind, description=what, mime_type="text/plain")(_reading(kind, text))

    @server.prompt(description="Carry on a search until it has ended.")
    def search(run: str = "") -> str:
        which = f"Join run {run} and carry it on" if run else "Ask me which task to search, begin a run, carry it on"
        return f"{which} with the ksearch tools until it has ended. Then tell me the best program.\n\n{instructions()}"


def _reading(kind: str, text: Callable[[str], str]) -> Callable[[str, str], str]:
    def read(run: str, id: str) -> str:
        return text(f"ksearch://{run}/{kind}/{id}")

    return read


def _advising(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The boundary: our errors become text that an agent can act on."""
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def waited(*args: Any, **kwargs: Any) -> Any:
            try:
                return await tool(*args, **kwargs)
            except KSearchError as error:
                raise ToolError(explain(error)) from error

        return waited

    @functools.wraps(tool)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except KSearchError as error:
            raise ToolError(explain(error)) from error

    return called
