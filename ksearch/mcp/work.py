"""Handing out work and taking answers. Leases keep agents apart: what one holds, no other is given or may answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ksearch.errors import AgentError, InvalidCommand
from ksearch.mcp.house import House
from ksearch.mcp.measuring import unmeasured
from ksearch.mcp.sources import Draft, parsed, reply_text
from ksearch.mcp.telling import Said, clipped, happened, refuse, short
from ksearch.models import estimate_tokens
from ksearch.prompts.text import one_line
from ksearch.protocol import Cost, Done, Holder, Kind, Refusal, Request, Wait
from ksearch.run import Run
from ksearch.service.answering import Outcome, Told, describe, take_unanswered, tell_lost, tell_raw
from ksearch.service.beginning import Setting, setting
from ksearch.service.prompting import as_text
from ksearch.service.reading import read_reply
from ksearch.state import Pending, measured_or_waiting, was_asked
from ksearch.types import Program

HANDED_OUT = frozenset({Kind.PLAN, Kind.WRITE})  # measuring is the machine's: no agent reports numbers of its own
STRIKES = 3  # answers to one request that are no answers: the last one is recorded, and counts as an attempt


@dataclass(frozen=True, slots=True)
class Agent:
    """Who calls. `known`: its calls can be told from other agents', so what it holds is handed to it again."""

    name: str
    holder: Holder
    known: bool = True


class Work:
    def __init__(self, house: House) -> None:
        self._house = house
        self._strikes: dict[tuple[str, str], int] = {}

    # --- out ---

    def next_request(self, run_name: str, agent: Agent, *, by_reference: bool = False) -> Said:
        """The next piece of work for this agent, leased to it: what it holds already comes first."""
        with self._house.run(run_name) as run:
            at = setting(run.state)
            got = self._held(run, agent) or take_unanswered(
                run, at, agent.holder, HANDED_OUT, self._house.rules.lease_s, lambda _: None
            )
            if not isinstance(got, Request):
                return self._nothing(run, at, got)
            self._house.remember(run.id, agent.holder)
            return _handed(run, got, by_reference)

    def _held(self, run: Run, agent: Agent) -> Request | None:
        now = run.clock()
        held = (p for p in run.state.pending.values() if p.lease and p.lease.deadline > now)
        mine = (p.request for p in held if p.lease and p.lease.holder == agent.holder)
        return next((r for r in mine if r.kind in HANDED_OUT), None) if agent.known else None

    def _nothing(self, run: Run, at: Setting, got: Wait | Done) -> Said:
        state, waiting = run.state, unmeasured(run.state)
        facts: dict[str, Any] = {"run": run.id, "request": None, "why": got.why}
        if isinstance(got, Done):
            return Said(facts | {"ended": True, "next": f'best(run="{run.id}")'})
        facts |= {"unmeasured": [short(id) for id in waiting], "out": out(run)}
        why_not = self._house.why_not_measured_here(at)
        again = f'next_request(run="{run.id}", wait_s=45)'
        if state.paused_until is not None:
            then = f"{again}: the run goes on by itself"
        elif state.paused:
            then = f'ask your user, then resume(run="{run.id}")'
        elif waiting and why_not is None:
            then = f'evaluate(run="{run.id}")'
        elif waiting:
            facts["not_measured_here"] = why_not
            then = f"{again}: programs are measured elsewhere (`ksearch resume {run.id} --stay` where the device is)"
        else:
            then = f'{again}, or submit_unasked(run="{run.id}", ...) with an idea of your own'
        return Said(facts | {"next": then})

    # --- in ---

    def submit_plan(self, run_name: str, request_id: str, plan: Mapping[str, Any], agent: Agent) -> Said:
        raw = json.dumps(plan, ensure_ascii=False).encode("utf-8", "replace")
        with self._house.run(run_name) as run:
            pending = answerable(run, request_id, Kind.PLAN, agent)
            at = setting(run.state)
            reply = read_reply(run.state, pending.request, raw, "", at.spec, at.config.language)
            if isinstance(reply, Refusal):
                again = f'submit_plan(request="{request_id}")'
                self._strike(run, request_id, f"this is no plan: {reply.reason}", again)
            told = _tell(run, request_id, raw, at, agent)
            if told.outcome is Outcome.REFUSED:
                reason = happened(told.events)[0]
                raise refuse(f"{reason}. It is recorded, and {request_id} is asked again", _resubmit(run, request_id))
            return _taken(run, told, f'next_request(run="{run.id}")')

    def submit_program(self, run_name: str, request_id: str, draft: Draft, agent: Agent) -> Said:
        with self._house.run(run_name) as run:
            pending = answerable(run, request_id, Kind.WRITE, agent)
            at = setting(run.state)
            raw = reply_text(draft, at).encode("utf-8", "replace")
            reply = read_reply(run.state, pending.request, raw, "", at.spec, at.config.language)
            again = f'submit_program(request="{request_id}")'
            if isinstance(reply, Refusal):
                self._strike(run, request_id, f"no program in it: {reply.reason}", again)
            elif isinstance(reply, Program) and (known := measured_or_waiting(run.state, reply.id)):
                self._strike(run, request_id, f"{known} (program {short(reply.id)})", f"change it, then {again}")
            told = _tell(run, request_id, raw, at, agent)
            program = short(reply.id) if isinstance(reply, Program) else None
            return _taken(run, told, self._after_program(run, at), program=program)

    def submit_programs(self, run_name: str, request_id: str, drafts: Sequence[Draft], agent: Agent) -> Said:
        """The first answers the request; the others are further attempts at the same action."""
        with self._house.run(run_name) as run:
            pending = answerable(run, request_id, Kind.WRITE, agent)
            node = pending.request.node_id
            results = [{"answers": request_id, **self.submit_program(run.id, request_id, drafts[0], agent).facts}]
            for draft in drafts[1:]:
                try:
                    results.append(dict(self.submit_unasked(run.id, node, "", draft, agent).facts))
                except (AgentError, InvalidCommand) as error:
                    results.append({"not_taken": str(error)})
            for result in results:
                for name in ("run", "next"):
                    result.pop(name, None)
            then = self._after_program(run, setting(run.state))
            return Said({"run": run.id, "node": node, "programs": results, "next": then})

    def submit_unasked(self, run_name: str, node: str, title: str, draft: Draft, agent: Agent) -> Said:
        """A program that nobody asked for."""
        with self._house.run(run_name) as run:
            at = setting(run.state)
            program = parsed(draft, at)
            if node not in run.state.tree:
                raise refuse(f"run {run.id} has no node {node!r}", f'tree(run="{run.id}") lists them')
            events = run.submit(program, agent.name, node, one_line(title, 200))
            told = Told(Outcome.TAKEN, events)
            return _taken(run, told, self._after_program(run, at), program=short(program.id))

    def give_back(self, run_name: str, request_id: str, reason: str, agent: Agent) -> Said:
        with self._house.run(run_name) as run:
            answerable(run, request_id, None, agent)
            told = tell_lost(run, request_id, reason or f"given back by {agent.name}")
            return _taken(run, told, f'next_request(run="{run.id}")')

    def _after_program(self, run: Run, at: Setting) -> str:
        if self._house.why_not_measured_here(at) is None:
            return f'evaluate(run="{run.id}")'
        return f'next_request(run="{run.id}", wait_s=45): programs of this run are measured elsewhere'

    def _strike(self, run: Run, request_id: str, what: str, then: str) -> None:
        """An agent may correct itself at once, but not for ever."""
        count = self._strikes[run.id, request_id] = self._strikes.get((run.id, request_id), 0) + 1
        if count < STRIKES:
            raise refuse(f"{what}. Nothing was recorded, and no attempt spent", then)


# --- rules that keep agents apart --------------------------------------------------------------------------------


def answerable(run: Run, request_id: str, kind: Kind | None, agent: Agent) -> Pending:
    """The open request, if this agent may answer it.

    Raises:
        AgentError: it may not; the message says why, and what it can do.
    """
    pending, again = run.state.pending.get(request_id), f'next_request(run="{run.id}")'
    if pending is None:
        known = was_asked(run.state, request_id)
        what = "was answered or withdrawn already" if known else "was never made"
        mine = [id for id, p in run.state.pending.items() if p.lease and p.lease.holder == agent.holder]
        raise refuse(f"request {request_id!r} {what} in run {run.id}; you hold {', '.join(mine) or 'none'}", again)
    wanted = pending.request.kind
    if wanted is Kind.EVALUATE:
        raise refuse(f"{request_id} is a measurement, which only the evaluator answers", f'evaluate(run="{run.id}")')
    if kind and wanted is not kind:
        right = "submit_plan" if wanted is Kind.PLAN else "submit_program"
        raise refuse(f"{request_id} asks for a {wanted}, not a {kind}", f'{right}(request="{request_id}")')
    if pending.lease and not _may_answer(pending.lease.holder, pending.lease.deadline, run.clock(), agent):
        holder, left = pending.lease.holder, int(pending.lease.deadline - run.clock())
        name = holder.name.partition("/")[2] if holder.pid == agent.holder.pid else ""
        hint = f' (if that is you, give agent="{name}")' if name else ""
        raise refuse(f"{request_id} is held by {holder.name}, for at most {left} s more{hint}", again)
    return pending


def _may_answer(holder: Holder, deadline: float, now: float, agent: Agent) -> bool:
    """An agent that cannot be told from others of this server may answer what any such was given."""
    if holder == agent.holder or deadline <= now:
        return True
    one = (holder.host, holder.boot, holder.pid, holder.started)
    same = one == (agent.holder.host, agent.holder.boot, agent.holder.pid, agent.holder.started)
    return not agent.known and same and holder.name.partition("#")[0] == agent.holder.name.partition("#")[0]


# --- words ---------------------------------------------------------------------------------------------------------


def out(run: Run) -> list[dict[str, Any]]:
    """Open requests, and who works on them."""
    found = []
    for id, p in run.state.pending.items():
        held = {"by": one_line(p.lease.holder.name, 60), "until": stamp(p.lease.deadline)} if p.lease else {}
        found.append({"request": id, "kind": str(p.request.kind), "node": p.request.node_id, **held})
    return found


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def prompt_uri(run_id: str, request_id: str) -> str:
    return f"ksearch://{run_id}/prompt/{request_id}"


def _handed(run: Run, request: Request, by_reference: bool) -> Said:
    pending, recorded = run.state.pending[request.id], run.prompt(request.id)
    uri, node = prompt_uri(run.id, request.id), run.state.tree[request.node_id]
    plan = request.kind is Kind.PLAN
    answer = "plan={...}" if plan else "source=..."
    then = f'submit_{"plan" if plan else "program"}(run="{run.id}", request="{request.id}", {answer})'
    facts: dict[str, Any] = {"run": run.id, "request": request.id, "kind": str(request.kind), "node": node.id}
    facts |= {"action": one_line(node.action.title)} if not plan else {"asked_because": request.why}
    facts |= {"start_from": f"ksearch://{run.id}/program/{short(request.program_id)}"} if request.program_id else {}
    facts |= {"held_until": stamp(pending.lease.deadline)} if pending.lease else {}
    facts |= {"refused_before": list(pending.refusals)} if pending.refusals else {}
    text = as_text(recorded) if recorded else describe(run, request)
    if by_reference:
        return Said(facts | {"prompt": uri, "prompt_chars": len(text), "next": f'read(uri="{uri}"), then {then}'})
    return Said(facts | {"next": then}, [clipped(text, uri)])


def _tell(run: Run, request_id: str, raw: bytes, at: Setting, agent: Agent) -> Told:
    """What the agent thought besides is not known: tokens are those of prompt and answer, the price is unknown."""
    prompt = run.prompt(request_id) or b""
    tokens = estimate_tokens(prompt.decode("utf-8", "replace")) + estimate_tokens(raw.decode("utf-8", "replace"))
    cost = Cost(tokens, None)
    return tell_raw(run, request_id, raw, task=at.spec, language=at.config.language, cost=cost, model=agent.name)


def _taken(run: Run, told: Told, then: str, **facts: Any) -> Said:
    state = run.state
    if state.ended:
        then = f'best(run="{run.id}")'
    elif state.paused:
        then = f'ask your user, then resume(run="{run.id}")'
    said = {"run": run.id, "outcome": str(told.outcome), **facts, "happened": happened(told.events)}
    return Said(said | {"next": then})


def _resubmit(run: Run, request_id: str) -> str:
    if request_id in run.state.pending:
        return f'a corrected submit_plan(run="{run.id}", request="{request_id}")'
    return f'next_request(run="{run.id}")'
