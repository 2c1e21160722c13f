"""Which agent calls. Over stdio a server belongs to one; over HTTP several share it."""

from __future__ import annotations

import itertools
import re

from mcp.server.mcpserver import Context

from ksearch.holders import this_process
from ksearch.mcp.work import Agent

_ODD = re.compile(r"[^A-Za-z0-9 ._/@+-]+")


class Identities:
    """`shared`: several agents may call this server.

    An agent is told from others by the name it gives, else by its session. A client of a protocol without sessions
    that gives no name is nobody in particular: each call gets work of its own, and is handed nothing twice.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._calls = itertools.count(1)

    def of(self, context: Context, given: str) -> Agent:
        client = _client(context)
        if given := _plain(given):
            return Agent(f"{client}/{given}", this_process(f"{client}/{given}"))
        if not self._shared:
            return Agent(client, this_process(client))
        if session := (context.headers or {}).get("mcp-session-id", ""):
            return Agent(client, this_process(f"{client}@{_plain(session)[:12]}"))
        return Agent(client, this_process(f"{client}#{next(self._calls)}"), known=False)


def _client(context: Context) -> str:
    """The client's own name for itself, for the log: "claude-code". No proof of anything."""
    params = context.session.client_params
    return (_plain(params.client_info.name) if params else "") or "agent"


def _plain(text: str) -> str:
    return _ODD.sub("", text).strip()[:60]
