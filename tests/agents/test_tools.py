"""Each tool through the SDK's own client in this process: a whole search, and errors that an agent can act on."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import TextResourceContents

from ksearch.mcp.house import Rules
from ksearch.mcp.server import instructions
from ksearch.mcp.tools import Tools
from ksearch.run import Run
from ksearch.store import Store
from tests.agents.calling import PLAN, Agent, a_run, a_store, an_agent, failing, passing, program, source

TOOLS = {
    "list_runs", "start_run", "next_request", "submit_plan", "submit_program", "submit_programs", "submit_unasked",
    "evaluate", "status", "tree", "best", "verdict", "read", "give_back", "pause", "resume",
}  # fmt: skip
Scenario = Callable[[Agent, Store], Awaitable[None]]


def play(folder: Path, scenario: Scenario, rules: Rules | None = None, **settings: Any) -> None:
    """Let an agent act on a run called `a`."""

    async def acted() -> None:
        with a_store(folder) as store:
            a_run(store, **settings)
            async with an_agent(store, rules) as agent:
                await scenario(agent, store)

    asyncio.run(acted())


async def planned(agent: Agent) -> None:
    await agent("next_request")
    await agent("submit_plan", request="r0", plan=PLAN)


def test_a_search_from_plan_to_best(tmp_path: Path) -> None:
    good, bad = passing(1)[0], failing(1)[0]

    async def scenario(agent: Agent, store: Store) -> None:
        asked, prompt = await agent.both("next_request")
        assert (asked["run"], asked["request"], asked["kind"], asked["node"]) == ("a", "r0", "plan", "root")
        assert "Row softmax" in prompt
        assert asked["next"].startswith('submit_plan(run="a", request="r0"')
        told = await agent("submit_plan", request="r0", plan=PLAN)
        assert told["outcome"] == "taken"
        assert told["happened"] == ['plan accepted: n1 under root "Tile"; n2 under n1 "Vectorise"']
        asked, prompt = await agent.both("next_request")
        assert (asked["request"], asked["kind"], asked["action"]) == ("r1", "write", "Tile")
        assert "Tile" in prompt
        told = await agent("submit_program", request="r1", source=source(bad))
        assert told["next"] == 'evaluate(run="a")'
        found = await agent("evaluate")
        assert found["measured"][0]["verdict"] == "compile_error"
        assert found["measured"][0]["reason"]
        assert found["next"] == 'next_request(run="a")'
        asked = await agent("next_request")
        await agent("submit_program", request=asked["request"], source=source(good))
        found = await agent("evaluate")
        assert found["measured"][0]["verdict"] == "passed"
        assert found["measured"][0]["speedup"]["value"] > 0
        assert "n1 attempt 2: new best of the run" in found["happened"]
        assert found["happened"][-1] == "the run has ended: budget: evaluations"
        assert (await agent("next_request"))["ended"]
        best, sources = await agent.both("best")
        assert best["program"] == program(good).id[:12]
        assert source(good) in sources

    play(tmp_path, scenario, evaluations=2)


def test_what_an_agent_reads_first_is_short_and_names_every_tool(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        tools = (await agent.client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.description, tool.name
            assert len(tool.description) < 300
            assert "\n  " not in tool.description
            assert tool.input_schema["type"] == "object"
            assert "context" not in tool.input_schema.get("properties", {})
        whole = sum(len(json.dumps(tool.model_dump(exclude_none=True))) for tool in tools)
        assert whole < 15_000  # characters that every session of an agent pays for
        assert "evaluate" in (agent.client.instructions or "")
        prompts = (await agent.client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["search"]

    play(tmp_path, scenario)


def test_the_skill_names_only_tools_that_there_are() -> None:
    text = instructions()
    assert text.startswith("---\nname: ksearch\ndescription: ")
    named = set(re.findall(r"`([a-z_]+)\(", text))
    assert named <= TOOLS
    assert all(hasattr(Tools, name) for name in named)


def test_by_reference_ids_and_addresses_lead_to_the_same_text(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        asked, nothing = await agent.both("next_request", by_reference=True)
        assert (asked["prompt"], nothing) == ("ksearch://a/prompt/r0", "")
        _, prompt = await agent.both("next_request")
        part, text = await agent.both("read", uri=asked["prompt"])
        assert (text, part["total_chars"]) == (prompt, asked["prompt_chars"])
        part, text = await agent.both("read", uri=asked["prompt"], offset=len(prompt) - 5)
        assert text == prompt[-5:]
        resource = (await agent.client.read_resource(asked["prompt"])).contents[0]
        assert isinstance(resource, TextResourceContents)
        assert resource.text == prompt
        await agent("submit_plan", request="r0", plan=PLAN)
        assert (await agent.both("read", uri="ksearch://a/prompt/r0"))[1] == prompt  # answered, and still there
        await agent("next_request")
        written = await agent("submit_program", request="r1", source=source(1))
        _, text = await agent.both("read", uri=f"ksearch://a/program/{written['program']}")
        assert source(1) in text
        assert "Tile" in (await agent.both("read", uri="ksearch://a/tree"))[1]
        assert "Tile" in (await agent.both("tree", node="n1"))[1]
        for uri in ("ksearch://a/secret/x", "/etc/hostname", "ksearch://a/program/zz", "ksearch://b/tree"):
            assert "Next: " in await agent.fails("read", uri=uri)
            with pytest.raises(MCPError):
                await agent.client.read_resource(uri)

    play(tmp_path, scenario)


def test_several_programs_for_one_request_are_attempts_at_the_same_action(tmp_path: Path) -> None:
    one, two, three = passing(3)

    async def scenario(agent: Agent, store: Store) -> None:
        await planned(agent)
        await agent("next_request")
        told = await agent("submit_programs", request="r1", sources=[source(one), source(two), source(two), "no code"])
        assert [p.get("outcome") for p in told["programs"]] == ["taken", "taken", None, None]
        assert "waiting to be measured" in told["programs"][2]["not_taken"]
        found = await agent("evaluate")
        assert [m["program"] for m in found["measured"]] == [program(n).id[:12] for n in (one, two)]
        assert Run(store, "a").state.cycles["n1"].attempts[1].program_id == program(two).id
        told = await agent("submit_unasked", title="an idea of mine", source=source(three))
        assert "entered at n3" in told["happened"][0]
        await agent("evaluate")
        assert Run(store, "a").state.tree["n3"].action.title == "an idea of mine"

    play(tmp_path, scenario)


def test_a_program_of_several_files_and_one_in_a_fence(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        await planned(agent)
        asked = await agent("next_request")
        files = {"kernel.cpp": '#include "util.h"\n' + source(1), "util.h": "#define ONE 1\n"}
        told = await agent("submit_program", request=asked["request"], files=files)
        assert set(
            Run(store, "a").program(Run(store, "a").state.cycles["n1"].attempts[0].program_id or "").sources
        ) == set(files)
        assert told["outcome"] == "taken"
        await agent("evaluate")
        asked = await agent("next_request")
        await agent("submit_program", request=asked["request"], source=f"Here it is:\n\n```cpp\n{source(2)}```\n")
        await agent("evaluate")
        assert program(2).id in Run(store, "a").state.evaluations

    play(tmp_path, scenario)


def test_errors_say_what_is_wrong_and_what_to_call(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        async def fails(says: str, then: str, tool: str, **arguments: Any) -> None:
            text = await agent.fails(tool, **arguments)
            what, _, following = text.partition(" Next: ")
            assert says in what, text
            assert then in following, text

        await fails("nothing was measured", "status(", "verdict")
        await fails("'r7' was never made", "next_request(", "submit_plan", request="r7", plan=PLAN)
        await fails("holds no run 'b'", "list_runs()", "status", run="b")
        await fails("no node 'n9'", "tree(", "tree", node="n9")
        await agent("next_request")
        await fails("asks for a plan", "submit_plan(", "submit_program", request="r0", source=source(1))
        bad = {"edits": [{"op": "insert", "parent": "root"}]}
        await fails("edits[0].title: the key is missing", "submit_plan(", "submit_plan", request="r0", plan=bad)
        bad = {"edits": [{"op": "prune", "node": "root"}]}
        await fails("only an open node can be pruned", "submit_plan(", "submit_plan", request="r0", plan=bad)
        await agent("submit_plan", request="r0", plan=PLAN)
        await fails("answered or withdrawn already", "next_request(", "submit_plan", request="r0", plan=PLAN)
        await agent("next_request")
        await fails("no program in the call", "source=", "submit_program", request="r1")
        await fails("no block defines 'run'", "submit_program(", "submit_program", request="r1", source="int x;")
        await fails("must be relative", "files=", "submit_program", request="r1", files={"../x.cpp": source(1)})
        await agent("submit_program", request="r1", source=source(1))
        await fails("waiting to be measured", "status(", "submit_unasked", title="t", source=source(1))
        await fails("no node 'n9'", "tree(", "submit_unasked", title="t", source=source(2), node="n9")
        await fails("is neither paused", "status(", "resume")
        await fails("no task 'sofmax'", "start_run()", "start_run", task="sofmax")
        await fails("searches task softmax", "another name", "start_run", task="gemm", name="a")
        text = await agent.fails("submit_program", source="x")  # the SDK's own words for a missing argument
        assert "request" in text

    play(tmp_path, scenario)


def test_what_holds_no_program_costs_no_attempt_twice_and_then_one(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        await planned(agent)
        await agent("next_request")
        for _ in range(2):
            assert "no attempt spent" in await agent.fails("submit_program", request="r1", source="int x;")
        assert Run(store, "a").state.cycles["n1"].attempts[0].verdict is None
        told = await agent("submit_program", request="r1", source="int x;")
        assert told["outcome"] == "refused"
        assert told["happened"][0].startswith("no program: unparsable")
        assert Run(store, "a").state.cycles["n1"].attempts[0].verdict == "unparsable"

    play(tmp_path, scenario)


def test_pause_and_resume_are_the_agents_words_in_the_log(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        said = await agent("pause", reason="my user wants a break")
        assert said["happened"] == ["paused by mcp: my user wants a break"]
        assert said["next"] == 'ask your user, then resume(run="a")'
        asked = await agent("next_request")
        assert (asked["request"], asked["why"]) == (None, "paused: my user wants a break")
        assert "resume(" in asked["next"]
        assert (await agent("status"))["status"].startswith("paused")
        assert (await agent("resume", agent="alice"))["happened"] == ["resumed by mcp/alice"]
        assert (await agent("next_request"))["request"] == "r0"

    play(tmp_path, scenario)


def test_costs_of_an_agent_are_counted_and_their_price_is_unknown(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        await planned(agent)
        state = Run(store, "a").state
        assert state.spent.tokens > 3000  # prompt and answer, estimated
        assert state.unpriced == 1

    play(tmp_path, scenario)


def test_which_run_is_meant(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        assert (await agent("next_request"))["run"] == "a"
        a_run(store, "b", model="agent")
        assert "which run is meant? Give run=: a, b" in await agent.fails("next_request")
        assert (await agent("next_request", run="b"))["run"] == "b"
        async with an_agent(store, Rules(run="b")) as other:
            assert (await other("status"))["run"] == "b"
        listed = await agent("list_runs")
        assert {row["run"] for row in listed["runs"]} == {"a", "b"}
        assert {row["task"] for row in listed["tasks"]} >= {"softmax", "gemm"}

    play(tmp_path, scenario)


def test_a_run_is_begun_once_and_then_joined(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        begun = await agent("start_run", task="softmax", name="new", evaluations=3, width=2)
        assert (begun["run"], begun["how"], begun["max_evaluations"]) == ("new", "begun", 3)
        assert Run(store, "new").state.config.width == 2
        assert (await agent("start_run", name="new"))["how"] == "joined"
        assert (await agent("start_run", task="softmax", name="new", evaluations=9))["max_evaluations"] == 3
        assert (await agent("start_run", task="softmax"))["run"] == "softmax-1"
        assert "which task" in await agent.fails("start_run")

    play(tmp_path, scenario, Rules(measures=False))


def test_a_run_of_agents_is_theirs_whatever_models_a_settings_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ksearch.toml").write_text(
        'planner_model = "openai:gpt-5"\nwriters = ["openai:a", "openai:b"]\nusd = 5\n'
    )
    monkeypatch.chdir(tmp_path)

    async def scenario(agent: Agent, store: Store) -> None:
        begun, budget = await agent.both("start_run", task="softmax", name="new", evaluations=3)
        assert begun["how"] == "begun"
        assert budget == "budget: 3 evaluations, at most 9 attempts; 5 USD"
        state = Run(store, "new").state
        assert state.config.writers == ()
        assert "gpt-5" not in state.context["config"]

    play(tmp_path, scenario, Rules(measures=False))


def test_a_folder_is_searched_only_if_whoever_started_the_server_named_it(tmp_path: Path) -> None:
    from ksearch.tasks import init_task

    folder = init_task(tmp_path / "gate").folder

    async def scenario(agent: Agent, store: Store) -> None:
        assert "ksearch mcp --task FOLDER" in await agent.fails("start_run", task=str(folder))
        named = Rules(folders={"gate": folder}, measures=False)
        async with an_agent(store, named) as other:
            assert (await other("start_run", task="gate"))["task"] == "gate"
            assert (await other("start_run", task=str(folder)))["task"] == "gate"
        async with an_agent(store, Rules(any_folder=True, measures=False)) as free:
            assert (await free("start_run", task=str(folder)))["task"] == "gate"

    play(tmp_path, scenario, Rules(measures=False))


def test_a_long_text_comes_in_parts(tmp_path: Path) -> None:
    async def scenario(agent: Agent, store: Store) -> None:
        await planned(agent)
        await agent("next_request")
        long = source(1) + "".join(f"// line {n}\n" for n in range(9000))
        told = await agent("submit_program", request="r1", source=long)
        await agent("evaluate")
        uri = f"ksearch://a/program/{told['program']}"
        first, text = await agent.both("read", uri=uri)
        assert first["next"] == f'read(uri="{uri}", offset=60000)'
        rest, more = await agent.both("read", uri=uri, offset=60000)
        assert "next" not in rest
        assert len(text + more) == first["total_chars"]

    play(tmp_path, scenario)
