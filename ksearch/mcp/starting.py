"""start_run: begin a search, or join it where one of that name goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ksearch.config import Loaded, load
from ksearch.mcp.house import House
from ksearch.mcp.telling import Said, refuse
from ksearch.run import Run
from ksearch.service.beginning import Setting, begin, check_language
from ksearch.service.preflight import objection, preflight
from ksearch.tasks import load_task


def start_run(house: House, task_name: str, name: str, wanted: dict[str, Any]) -> Said:
    """Begin a run that agents carry on. An existing one of that name is joined, never begun anew.

    Args:
        wanted: settings of the run; None is the default.
    """
    if name and any(info.id == name and info.seq for info in house.store.runs()):
        return _joined(house, name, task_name)
    if not task_name:
        raise refuse("which task? Give task=", "list_runs() names them")
    place = house.task_place(task_name)
    loaded = _by_agents(load({**wanted, "task": place, "model": "agent"}))
    if why := objection(loaded.config):
        raise refuse(why, "start_run() with a larger budget")
    task = load_task(place)
    check_language(task, loaded.config.language)  # before anything is measured
    at = Setting(loaded.config, loaded.origins, task)
    why_not = house.why_not_measured_here(at)
    # Prompts tell what the machine can do: it is measured before the run begins.
    run = begin(house.store, name or None, loaded, None if why_not else _machine(house, at))
    return Said(_facts(run, "begun", why_not), [preflight(loaded.config)])


def _by_agents(loaded: Loaded) -> Loaded:
    """Agents plan and write, whatever models a settings file names for other runs."""
    config = loaded.config.model_copy(update={"planner_model": None, "writer_model": None, "writers": ()})
    return replace(loaded, config=config)


def _machine(house: House, at: Setting) -> str | None:
    with house.staffing.staff(at) as staff:
        return staff.machine()


def _joined(house: House, name: str, task_name: str) -> Said:
    with house.run(name) as run:
        task = run.state.context.get("task")
        if task_name and task != load_task(house.task_place(task_name)).name:
            raise refuse(f"run {name} searches task {task}, not {task_name}", "start_run() with another name")
        return Said(_facts(run, "joined", None))


def _facts(run: Run, how: str, why_not: str | None) -> dict[str, Any]:
    budget = run.state.config.budget
    facts: dict[str, Any] = {"run": run.id, "how": how, "task": run.state.context.get("task")}
    facts |= {"evaluations": run.state.evaluated, "max_evaluations": budget.evaluations}
    facts |= {"not_measured_here": why_not} if why_not else {}
    return facts | {"next": f'next_request(run="{run.id}")'}
