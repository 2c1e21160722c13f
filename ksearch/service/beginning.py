"""Beginning a run, and finding out later what it was begun with."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import ksearch
from ksearch.codec import encode_event
from ksearch.config import Loaded, RunConfig, recorded
from ksearch.definition import TaskSpec
from ksearch.errors import BadInput, StoreError, TaskError
from ksearch.events import AnyEvent, RunStarted
from ksearch.run import Run
from ksearch.service.machine import KEY as MACHINE
from ksearch.service.preflight import with_reserve
from ksearch.state import State
from ksearch.store import Store
from ksearch.tasks import Task, load_task
from ksearch.tasks.folder import BUNDLED


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run was begun with, as far as its log says. `task` None: a run without one."""

    config: RunConfig
    origins: Mapping[str, str]
    task: Task | None

    @property
    def spec(self) -> TaskSpec | None:
        return self.task.spec if self.task else None


def begin(
    store: Store,
    name: str | None,
    loaded: Loaded,
    machine: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> Run:
    """Begin a run; its name is `name`, or made from the task's.

    Args:
        machine: what prompts are to say of the machine that measures, see `ksearch.service.machine`.
        extra: more for the context in its log, such as the campaign that it belongs to.

    A run that was named but never begun, because its creation was interrupted, is begun now.

    Raises:
        TaskError: the task cannot be used.
        StoreError: the name is taken or cannot be used.
    """
    loaded = with_reserve(loaded)
    task = load_task(loaded.config.task) if loaded.config.task else None
    context = {"version": ksearch.__version__, **(extra or {}), **loaded.context()}
    if task:
        context |= {"task": task.name, "task_hash": task.hash}
        if task.folder.parent != BUNDLED:  # a bundled one is found by its name on any machine
            context["task_folder"] = str(task.folder.resolve())
        check_language(task, loaded.config.language)
    if machine:
        context[MACHINE] = machine
    name = name or _free_name(store, task.name if task else "run")
    taken = {info.id: info.seq for info in store.runs()}
    if taken.get(name):
        raise StoreError(f"{store.name} already holds a run {name}: `ksearch resume {name}` goes on with it")
    if name not in taken:
        return Run.create(store, name, loaded.config.search, context)
    store.append(name, 0, [encode_event(RunStarted(at=time.time(), config=loaded.config.search, context=context))])
    return Run(store, name)


def setting(state: State) -> Setting:
    """Raises:
    TaskError: the task's folder is gone, or was changed since: results would not be comparable.
    """
    loaded = recorded(state.context)
    config, origins = (loaded.config, loaded.origins) if loaded else (RunConfig(), {})
    name = state.context.get("task")
    if not name:
        return Setting(config, origins, None)
    folder = state.context.get("task_folder") or BUNDLED / name
    task = load_task(folder)
    if task.hash != state.context.get("task_hash"):
        raise TaskError(
            f"the task folder {folder} is not as it was when the run began, so old and new results cannot be compared. "
            "Put it back as it was (a bundled task: install K-Search "
            f"{state.context.get('version')} again), or begin a new run"
        )
    return Setting(config, origins, task)


def check_language(task: Task, language: str | None) -> None:
    if language and language not in task.spec.languages:
        raise BadInput(
            f"task {task.name} takes {', '.join(task.spec.languages)}; --language {language} is none of them"
        )


def log_of(run: Run) -> list[AnyEvent]:
    """The run's events, as what they are."""
    return cast("list[AnyEvent]", run.log())


def _free_name(store: Store, stem: str) -> str:
    """STEM-1, STEM-2, ...: the first that comes after all that are there."""
    pattern = re.compile(rf"{re.escape(stem)}-(\d+)")
    numbers = [int(m[1]) for info in store.runs() if (m := pattern.fullmatch(info.id))]
    return f"{stem}-{max(numbers, default=0) + 1}"
