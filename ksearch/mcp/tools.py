"""The tools, one method each. Their docstrings and descriptions are what the agent reads: short and exact."""

from __future__ import annotations

import functools
import json
from typing import Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from ksearch import events as ev
from ksearch.mcp.evaluating import Evaluating, report
from ksearch.mcp.house import House
from ksearch.mcp.identity import Identities
from ksearch.mcp.looking import Looking
from ksearch.mcp.sources import Draft
from ksearch.mcp.starting import start_run
from ksearch.mcp.telling import Said, happened
from ksearch.mcp.work import Agent, Work

MAX_WAIT_S = 600
POLL_S = 1.0
MAX_PROGRAMS = 8

RunName = Annotated[str, Field(description="Name of the run. Empty: the only unfinished one.")]
RequestId = Annotated[str, Field(description='Id of the request, as next_request gave it: "r3".')]
Name = Annotated[str, Field(description="A name of your own, always the same, if several agents share this server.")]
Source = Annotated[str, Field(description="The whole program, as one source file. Give this or files.")]
Files = Annotated[dict[str, str] | None, Field(description="Several files: name -> text. One defines the entry point.")]
Wait = Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="Seconds to wait for a result; less than your timeout.")]


class Tools:
    """The tools, one method each."""

    def __init__(self, house: House, identities: Identities) -> None:
        self._house, self._identities = house, identities
        self._work, self._looking, self._evaluating = Work(house), Looking(house), Evaluating(house)

    def list_runs(self) -> CallToolResult:
        """The runs there are, and the tasks that can be searched here. Call this first if you were told no run."""
        return _result(self._looking.runs())

    async def start_run(
        self,
        context: Context,
        task: Annotated[str, Field(description="A task of list_runs.")] = "",
        name: Annotated[str, Field(description="Name of the run. An existing one is joined.")] = "",
        evaluations: Annotated[int | None, Field(ge=1, description="Budget: programs measured. Default 120.")] = None,
        minutes: Annotated[float | None, Field(gt=0, description="Budget: working time.")] = None,
        stagnation: Annotated[
            int | None, Field(ge=1, description="Attempts without gain that end an action. Default 7.")
        ] = None,
        width: Annotated[int | None, Field(ge=1, description="Programs asked for at once: one per agent.")] = None,
        language: Annotated[str | None, Field(description="Default: the task's first.")] = None,
    ) -> CallToolResult:
        """Begin a search, or join the run of that name. Looks at this machine first, which takes some seconds."""
        wanted = {"evaluations": evaluations, "minutes": minutes, "stagnation": stagnation, "width": width}
        await report(context, 0, "looking at this machine")
        begin = functools.partial(start_run, self._house, task, name, wanted | {"language": language})
        return _result(await anyio.to_thread.run_sync(begin))

    async def next_request(
        self,
        context: Context,
        run: RunName = "",
        by_reference: Annotated[bool, Field(description="Ids and addresses only; read() gives the prompt.")] = False,
        wait_s: Wait = 0,
        agent: Name = "",
    ) -> CallToolResult:
        """The next piece of work: plan or write, with the prompt to follow. It is yours until `held_until`, no other
        agent gets it; asked again, you get the same one. `request` null: nothing to do now, `why` and `next` say
        what to do instead."""
        who = self._identities.of(context, agent)
        take = functools.partial(self._work.next_request, run, who, by_reference=by_reference)
        until = anyio.current_time() + wait_s
        while True:
            said = await anyio.to_thread.run_sync(take)
            over = said.facts.get("request") or said.facts.get("ended") or anyio.current_time() >= until
            if over or "evaluate(" in str(said.facts["next"]):
                return _result(said)
            await report(context, wait_s - (until - anyio.current_time()), f"waiting: {said.facts['why']}")
            await anyio.sleep(POLL_S)

    def submit_plan(
        self,
        context: Context,
        request: RequestId,
        plan: Annotated[
            dict[str, Any], Field(description='The JSON object that the prompt asks for: {"assessment", "edits"}.')
        ],
        run: RunName = "",
        agent: Name = "",
    ) -> CallToolResult:
        """Answer a plan request with edits of the tree. All edits are taken or none; a refusal says what to change."""
        return _result(self._work.submit_plan(run, request, plan, self._identities.of(context, agent)))

    def submit_program(
        self,
        context: Context,
        request: RequestId,
        source: Source = "",
        files: Files = None,
        run: RunName = "",
        agent: Name = "",
    ) -> CallToolResult:
        """Answer a write request with one complete program. It is stored, not measured yet: call evaluate next."""
        who = self._identities.of(context, agent)
        return _result(self._work.submit_program(run, request, Draft(source, files or {}), who))

    def submit_programs(
        self,
        context: Context,
        request: RequestId,
        sources: Annotated[
            list[str], Field(min_length=1, max_length=MAX_PROGRAMS, description="Complete one-file programs.")
        ],
        run: RunName = "",
        agent: Name = "",
    ) -> CallToolResult:
        """Answer a write request with several different programs: the first answers it, the others are further
        attempts at the same action. Each costs an evaluation."""
        who = self._identities.of(context, agent)
        return _result(self._work.submit_programs(run, request, [Draft(text) for text in sources], who))

    def submit_unasked(
        self,
        context: Context,
        title: Annotated[str, Field(description="What it does, in one line.")],
        source: Source = "",
        files: Files = None,
        node: Annotated[str, Field(description="Where it belongs: an open or solved node, or root.")] = "root",
        run: RunName = "",
        agent: Name = "",
    ) -> CallToolResult:
        """Bring in a program that no request asked for. It is measured and judged like any other."""
        who = self._identities.of(context, agent)
        return _result(self._work.submit_unasked(run, node, title, Draft(source, files or {}), who))

    async def evaluate(self, context: Context, run: RunName = "", wait_s: Wait = 45) -> CallToolResult:
        """Build, check and time the programs that wait, on this machine. Reports progress. `waiting` above 0 in the
        answer: it goes on without you, call evaluate again. Verdicts: passed, or what is wrong and where."""
        return _result(await self._evaluating.evaluate(context, run, wait_s))

    def status(self, run: RunName = "") -> CallToolResult:
        """Where a run stands: best so far, budget, who works on what, what waits to be measured."""
        return _result(self._looking.status(run, self._evaluating.doing(run)))

    def tree(
        self, run: RunName = "", node: Annotated[str, Field(description="A node's story instead.")] = ""
    ) -> CallToolResult:
        """The search tree: each action with its priority, attempts, speedup, predicted and measured gain."""
        return _result(self._looking.tree(run, node))

    def best(self, run: RunName = "") -> CallToolResult:
        """The best program so far: its evaluation and its sources."""
        return _result(self._looking.best(run))

    def verdict(
        self, run: RunName = "", program: Annotated[str, Field(description="Id. Empty: measured last.")] = ""
    ) -> CallToolResult:
        """All about one evaluation: each workload's time, floor, error and speedup, doubts, the build or run log."""
        return _result(self._looking.verdict(run, program))

    def read(
        self,
        uri: Annotated[str, Field(description="ksearch://RUN/prompt|program|verdict|node/ID or ksearch://RUN/tree")],
        offset: Annotated[int, Field(ge=0, description="Characters to skip.")] = 0,
    ) -> CallToolResult:
        """Any text by its address, in parts if it is long: for clients that cannot read resources."""
        return _result(self._looking.read(uri, offset))

    def give_back(
        self, context: Context, request: RequestId, reason: str = "", run: RunName = "", agent: Name = ""
    ) -> CallToolResult:
        """Give a request back that you will not answer, so that another may."""
        return _result(self._work.give_back(run, request, reason, self._identities.of(context, agent)))

    def pause(self, context: Context, reason: str, run: RunName = "", agent: Name = "") -> CallToolResult:
        """Hand out nothing new until resume, for all agents. Only if your user wants it."""
        return self._command(run, ev.Pause(reason), self._identities.of(context, agent))

    def resume(self, context: Context, run: RunName = "", agent: Name = "") -> CallToolResult:
        """Let a paused run go on. Only when its cause is mended or your user wants it."""
        return self._command(run, ev.Resume(), self._identities.of(context, agent))

    def _command(self, name: str, command: ev.Command, who: Agent) -> CallToolResult:
        with self._house.run(name) as run:
            events = run.command(command, who.name)
            then = f'next_request(run="{run.id}")'
            then = f'ask your user, then resume(run="{run.id}")' if run.state.paused else then
            return _result(Said({"run": run.id, "happened": happened(events), "next": then}))


def _result(said: Said) -> CallToolResult:
    """Facts as JSON, then texts as they are: prompts and sources are read best unescaped."""
    head = json.dumps(said.facts, ensure_ascii=False, allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=_whole(text)) for text in (head, *said.texts)])


def _whole(text: str) -> str:
    """Without halves of surrogate pairs, which no JSON message can hold."""
    return text.encode("utf-8", "replace").decode()
