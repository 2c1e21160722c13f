"""What agents may look at: runs, status, tree, programs, verdicts; and everything by its address."""

from __future__ import annotations

import json
import re
from typing import Any

from ksearch import events as ev
from ksearch.errors import StoreError, UnknownBlob
from ksearch.mcp.house import House
from ksearch.mcp.measuring import unmeasured
from ksearch.mcp.telling import MAX_TEXT, Said, clipped, interval, refuse, short, verdict_facts, workload_facts
from ksearch.mcp.work import out
from ksearch.prompts.text import fenced, one_line
from ksearch.run import Run
from ksearch.service.beginning import log_of, setting
from ksearch.service.best import best_of
from ksearch.service.prompting import as_text
from ksearch.state import State
from ksearch.story import node_story
from ksearch.tasks import load_task
from ksearch.types import Program
from ksearch.views import holder_of, summary, tree_text

WIDTH = 110
LISTED = 20  # runs
SCHEME = "ksearch://"
_ADDRESS = re.compile(r"ksearch://([^/]+)/(prompt|program|verdict|node|tree)(?:/([^/]+))?")


class Looking:
    """Nothing here writes."""

    def __init__(self, house: House) -> None:
        self._house = house

    def runs(self) -> Said:
        infos = sorted((i for i in self._house.store.runs() if i.seq), key=lambda i: i.updated_at)[-LISTED:]
        rows: list[dict[str, Any]] = []
        for info in reversed(infos):
            try:
                state = Run(self._house.store, info.id).state
            except StoreError as error:
                rows.append({"run": info.id, "status": f"cannot be read: {error}"})
                continue
            rows.append({"run": info.id, "task": state.context.get("task"), **_standing(state)})
        tasks = []
        for name, place in self._house.tasks().items():
            task = load_task(place)
            why_not = self._house.why_no_device(task) if self._house.rules.measures else "--no-measure"
            here = {"measured_here": True} if why_not is None else {"measured_here": False, "because": why_not}
            tasks.append({"task": name, "title": task.spec.title, "languages": list(task.spec.languages), **here})
        going = next((row["run"] for row in rows if row["status"].startswith(("unfinished", "paused"))), None)
        begin = 'start_run(task="...", evaluations=20)'
        then = f'next_request(run="{going}") joins the latest unfinished run; {begin} begins one' if going else begin
        return Said({"runs": rows, "tasks": tasks, "next": then})

    def status(self, run_name: str, measuring: str | None = None) -> Said:
        with self._house.run(run_name) as run:
            state, at = run.state, setting(run.state)
            why_not = self._house.why_not_measured_here(at)
            facts: dict[str, Any] = {"run": run.id, "task": at.task.name if at.task else None, **_standing(state)}
            facts |= {"attempts": state.attempts, "max_attempts": state.config.budget.max_attempts, "out": out(run)}
            facts |= {"unmeasured": [short(id) for id in unmeasured(state)], "measuring_here": measuring}
            facts |= {"not_measured_here": why_not} if why_not else {}
            return Said(facts | {"next": self._next(run, why_not)}, [summary(state, WIDTH)])

    def _next(self, run: Run, why_not: str | None) -> str:
        if run.state.ended:
            return f'best(run="{run.id}")'
        if run.state.paused and run.state.paused_until is None:
            return f'ask your user, then resume(run="{run.id}")'
        if unmeasured(run.state) and why_not is None:
            return f'evaluate(run="{run.id}")'
        return f'next_request(run="{run.id}")'

    def tree(self, run_name: str, node: str = "") -> Said:
        with self._house.run(run_name) as run:
            facts = {"run": run.id, "nodes": len(run.state.tree), "best_node": _best_node(run.state)}
            text = self._node(run, node) if node else tree_text(run.state, WIDTH)
            uri = f"{SCHEME}{run.id}/node/{node}" if node else f"{SCHEME}{run.id}/tree"
            then = f'tree(run="{run.id}", node="n1") tells the story of one node'
            return Said(facts | ({"node": node} if node else {"next": then}), [clipped(text, uri)])

    def _node(self, run: Run, node: str) -> str:
        if node not in run.state.tree:
            raise refuse(f"run {run.id} has no node {node!r}", f'tree(run="{run.id}") lists them')
        return node_story(log_of(run), run.state, node, WIDTH)

    def best(self, run_name: str) -> Said:
        with self._house.run(run_name) as run:
            found = best_of(run)
            if found is None:
                then = self._next(run, self._house.why_not_measured_here(setting(run.state)))
                return Said({"run": run.id, "program": None, "why": "no program has passed yet", "next": then})
            facts = {"run": run.id, "node": found.node_id, **verdict_facts(found.evaluation)}
            facts |= {"language": found.program.language, "entry_point": found.program.entry_point}
            facts |= {"next": f"your user can write its files: ksearch best {run.id} -o DIR"}
            uri = f"{SCHEME}{run.id}/program/{short(found.program.id)}"
            return Said(facts, [clipped(_sources(found.program), uri)])

    def verdict(self, run_name: str, program: str = "") -> Said:
        """All about one evaluation; of the program measured last where none is named."""
        with self._house.run(run_name) as run:
            if not run.state.evaluations:
                raise refuse(f"nothing was measured in run {run.id} yet", f'status(run="{run.id}")')
            id = whole_id(run, program) if program else list(run.state.evaluations)[-1]
            done = run.state.evaluations.get(id)
            if done is None:
                raise refuse(f"program {short(id)} waits to be measured", f'evaluate(run="{run.id}")')
            facts = {"run": run.id, "node": holder_of(run.state, id) or None, **verdict_facts(done)}
            facts |= {"device": done.device, "workloads": [workload_facts(w) for w in done.workloads]}
            facts |= {"source": f"{SCHEME}{run.id}/program/{short(id)}"}
            return Said(facts, [fenced(done.log, "text")] if done.log else [])

    # --- by address ---

    def read(self, uri: str, offset: int = 0) -> Said:
        """A part of a text by its address."""
        text = self.text(uri)
        part = text[offset : offset + MAX_TEXT]
        rest = len(text) - offset - len(part)
        facts: dict[str, Any] = {"uri": uri, "offset": offset, "total_chars": len(text)}
        facts |= {"next": f'read(uri="{uri}", offset={offset + len(part)})'} if rest > 0 else {}
        return Said(facts, [part])

    def text(self, uri: str) -> str:
        """Raises:
        AgentError: no such address, or nothing is there.
        """
        found = _ADDRESS.fullmatch(uri.strip())
        if not found:
            forms = ", ".join(
                f"{SCHEME}RUN/{form}" for form in ("prompt/REQUEST", "program/ID", "verdict/ID", "node/ID", "tree")
            )
            raise refuse(f"{uri!r} is no address here: {forms}", "list_runs()")
        run_id, kind, name = found[1], found[2], found[3] or ""
        if kind == "verdict":
            return json.dumps(self.verdict(run_id, name).facts, indent=1)
        with self._house.run(run_id) as run:
            if kind == "tree":
                return tree_text(run.state, WIDTH)
            if kind == "node":
                return self._node(run, name)
            return _sources(self._program(run, name)) if kind == "program" else _prompt(run, name)

    def _program(self, run: Run, prefix: str) -> Program:
        id = whole_id(run, prefix)
        try:
            return run.program(id)
        except UnknownBlob:
            raise refuse(f"the sources of program {short(id)} are not in this store", "status()") from None


def whole_id(run: Run, prefix: str) -> str:
    """A program of the run, measured or not, by the beginning of its id.

    Raises:
        AgentError: there is none, or several.
    """
    known = dict.fromkeys([*run.state.evaluations, *unmeasured(run.state)])
    found = [id for id in known if id.startswith(prefix)] if prefix else []
    if len(found) != 1:
        which = f"{len(found)} programs begin with {prefix!r}: give more of the id" if found else ""
        raise refuse(which or f"run {run.id} has no program {prefix!r}", f'tree(run="{run.id}", node=...) names them')
    return found[0]


def _prompt(run: Run, request_id: str) -> str:
    prompt = run.prompt(request_id)
    if prompt is None:  # answered: as it was handed out last
        leased = [e for e in log_of(run) if isinstance(e, ev.Leased) and e.request_id == request_id and e.prompt]
        if not leased:
            raise refuse(f"no prompt was made for request {request_id!r}", f'next_request(run="{run.id}")')
        prompt = run.store.get_blob(leased[-1].prompt or "")
    return as_text(prompt)


def _standing(state: State) -> dict[str, Any]:
    best = state.evaluations.get(state.best_id or "")
    status = f"ended: {state.ended}" if state.ended else f"paused: {state.paused}" if state.paused else "unfinished"
    return {
        "status": one_line(status),
        "evaluations": state.evaluated,
        "max_evaluations": state.config.budget.evaluations,
        "best": short(state.best_id),
        "speedup": interval(best.speedup) if best else None,
    }


def _best_node(state: State) -> str | None:
    return holder_of(state, state.best_id) or None if state.best_id else None


def _sources(program: Program) -> str:
    files = program.sources.items()
    return "\n\n".join(f"FILE: {one_line(path)}\n{fenced(text, program.language)}" for path, text in files)
