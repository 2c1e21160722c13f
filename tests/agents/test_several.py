"""Several agents on one run: leases keep them apart, and nothing is lost when one goes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ksearch import events as ev
from ksearch.mcp.house import Rules
from ksearch.run import Run
from tests.agents.calling import PLAN, Agent, a_run, a_store, an_agent, passing, program, source


def test_two_agents_work_on_one_run_without_stepping_on_each_other(tmp_path: Path) -> None:
    one, two, three = passing(3)

    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store, width=2, evaluations=3)
            async with an_agent(store) as alice, an_agent(store) as bob:
                # As over stdio each has a server of its own; in one process they must say who they are.
                assert (await alice("next_request", agent="alice"))["request"] == "r0"
                waiting = await bob("next_request", agent="bob")
                assert (waiting["request"], waiting["why"]) == (None, "work is out")
                assert waiting["out"][0]["by"] == "mcp/alice"
                assert "held by mcp/alice" in await bob.fails("submit_plan", request="r0", plan=PLAN, agent="bob")
                await alice("submit_plan", request="r0", plan=PLAN, agent="alice")
                mine = await alice("next_request", agent="alice")
                theirs = await bob("next_request", agent="bob")
                assert (mine["request"], theirs["request"]) == ("r1", "r2")
                assert mine["node"] == theirs["node"] == "n1"
                assert (await alice("next_request", agent="alice"))["request"] == "r1"  # asked again: the same
                refused = await alice.fails("submit_program", request="r2", source=source(one), agent="alice")
                assert "r2 is held by mcp/bob" in refused
                assert "you hold r1" in await alice.fails("give_back", request="r9", agent="alice")
                both = await asyncio.gather(
                    alice("submit_program", request="r1", source=source(one), agent="alice"),
                    bob("submit_program", request="r2", source=source(two), agent="bob"),
                )
                assert [told["outcome"] for told in both] == ["taken", "taken"]
                await asyncio.gather(alice("evaluate"), bob("evaluate"))
                state = Run(store, "a").state
                assert set(state.evaluations) == {program(one).id, program(two).id}
                assert state.evaluated == 2
                await bob("submit_unasked", title="bob's own", source=source(three), agent="bob")
                await alice("evaluate")
                assert (await bob("status"))["status"] == "ended: budget: evaluations"

    asyncio.run(scenario())


def test_an_agent_that_waits_is_given_work_as_soon_as_there_is_some(tmp_path: Path) -> None:
    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store)
            async with an_agent(store) as alice, an_agent(store) as bob:
                await alice("next_request", agent="alice")
                waiting = asyncio.create_task(bob("next_request", agent="bob", wait_s=20))
                await asyncio.sleep(0.3)
                await alice("submit_plan", request="r0", plan=PLAN, agent="alice")
                assert (await asyncio.wait_for(waiting, 10))["kind"] == "write"

    asyncio.run(scenario())


def test_what_an_agent_gives_back_or_forgets_another_gets(tmp_path: Path) -> None:
    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store)
            async with an_agent(store, Rules(lease_s=1)) as alice, an_agent(store) as bob:
                await bob("next_request", agent="bob")
                told = await bob("give_back", request="r0", reason="not mine", agent="bob")
                assert told["happened"] == ["r0 was lost, and is asked again: not mine"]
                assert (await alice("next_request", agent="alice"))["request"] == "r0"
                await asyncio.sleep(1.2)
                assert (await bob("next_request", agent="bob"))["request"] == "r0"
                assert "held by mcp/bob" in await alice.fails("submit_plan", request="r0", plan=PLAN, agent="alice")

    asyncio.run(scenario())


def test_what_an_agent_held_is_free_when_its_server_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store)
            async with an_agent(store) as alice:
                await alice("next_request")
            lease = Run(store, "a").state.pending["r0"].lease
            assert lease is None
            async with an_agent(store) as bob:
                assert (await bob("next_request"))["request"] == "r0"

    asyncio.run(scenario())


def test_a_measurement_by_another_process_is_seen(tmp_path: Path) -> None:
    """One agent's machine measures, the other agent only plans and writes."""
    one = passing(1)[0]

    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store, evaluations=1)
            async with an_agent(store, Rules(measures=False)) as writer, an_agent(store) as lab:
                await writer("next_request")
                await writer("submit_plan", request="r0", plan=PLAN)
                await writer("next_request")
                told = await writer("submit_program", request="r1", source=source(one))
                assert "measured elsewhere" in told["next"]
                waiting = asyncio.create_task(writer("next_request", wait_s=20))
                await lab("evaluate")
                assert (await asyncio.wait_for(waiting, 10))["ended"]
                assert (await writer("verdict"))["verdict"] == "passed"

    asyncio.run(scenario())


async def _carry_on(agent: Agent, name: str, drafts: Iterator[int]) -> int:
    """Follow the answers until the run has ended; return how many programs this agent wrote."""
    written, said = 0, await agent("next_request", agent=name)
    while not said.get("ended"):
        if said.get("kind") == "plan":
            edits = [{"op": "insert", "parent": "root", "title": f"idea of {name} for {said['request']}"}]
            await agent("submit_plan", request=said["request"], plan={"edits": edits}, agent=name)
        elif said.get("kind") == "write":
            await agent("submit_program", request=said["request"], source=source(next(drafts)), agent=name)
            written += 1
        elif "evaluate(" in said["next"]:
            await agent("evaluate", wait_s=5)
        said = await agent("next_request", agent=name, wait_s=1)
    return written


def test_three_agents_carry_a_run_to_its_end_and_every_answer_counts_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        with a_store(tmp_path) as store:
            a_run(store, evaluations=12, width=3, stagnation=2)
            drafts = iter(range(1000))
            async with an_agent(store) as alice, an_agent(store) as bob, an_agent(store) as carol:
                agents = {"alice": alice, "bob": bob, "carol": carol}
                work = [_carry_on(agent, name, drafts) for name, agent in agents.items()]
                wrote = await asyncio.wait_for(asyncio.gather(*work), 60)
            run = Run(store, "a")
            answered = [e.request_id for e in run.log() if isinstance(e, ev.Written | ev.Evaluated | ev.Planned)]
            assert len(answered) == len(set(answered))
            assert run.state.ended == "budget: evaluations"
            assert run.state.evaluated == 12
            assert sum(wrote) == run.state.attempts
            assert not run.state.pending

    asyncio.run(scenario())
