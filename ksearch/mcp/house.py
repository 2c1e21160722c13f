"""What the server holds while it runs: the store, runs folded in memory, and the evaluator of this machine."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ksearch.errors import EvaluatorError, KSearchError, UnknownRun
from ksearch.evaluators.devices import device_of
from ksearch.mcp.staffing import IDLE_S, Staffing, is_fake
from ksearch.mcp.telling import refuse
from ksearch.protocol import Holder
from ksearch.run import LEASE_S, Run
from ksearch.service.beginning import Setting
from ksearch.store import Store
from ksearch.tasks import Task
from ksearch.tasks.folder import bundled_tasks

MAX_RUNS = 8  # kept folded in memory
MAX_MEANT = 20  # the latest runs, of which one may be meant


@dataclass(frozen=True, slots=True)
class Rules:
    """What the person who started the server allows. `folders`: tasks beside the bundled ones, name -> folder."""

    run: str | None = None
    folders: Mapping[str, Path] = field(default_factory=dict)
    any_folder: bool = False  # a task's reference.py is run outside the jail: agents name no folders unless told so
    measures: bool = True
    lease_s: float = LEASE_S
    idle_s: float = IDLE_S  # an evaluator that nobody uses is closed after this


class House:
    """Safe from several threads. `close` it: leases are given back and the evaluators' processes ended."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self.store, self.rules = store, rules
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, tuple[Run, threading.RLock]] = OrderedDict()
        self.staffing = Staffing(rules.idle_s)
        self._holders: set[tuple[str, Holder]] = set()
        self.closing = threading.Event()

    # --- runs ---

    @contextmanager
    def run(self, name: str = "") -> Iterator[Run]:
        """A run, as it is in the store now; nobody else in this process uses it meanwhile.

        Raises:
            UnknownRun: there is none of that name.
            AgentError: no name was given, and more than one run may be meant.
        """
        name = name or self._meant()
        with self._lock:
            if name not in self._runs:
                self._runs[name] = (self._opened(name), threading.RLock())
            self._runs.move_to_end(name)
            while len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
            run, turn = self._runs[name]
        with turn:
            run.refresh()
            yield run

    def _opened(self, name: str) -> Run:
        run = Run(self.store, name)
        if not run.seq:
            raise UnknownRun(f"run {name} was named but never begun: start_run with this name begins it")
        return run

    def _meant(self) -> str:
        if self.rules.run:
            return self.rules.run
        infos = sorted((i for i in self.store.runs() if i.seq), key=lambda i: i.updated_at)
        names = [info.id for info in infos[-MAX_MEANT:]]
        if not names:
            raise refuse("there is no run yet", 'start_run(task="softmax"), or another task of list_runs()')
        unfinished = [name for name in names if not Run(self.store, name).state.ended] if len(names) > 1 else names
        if len(unfinished) != 1:
            some = ", ".join((unfinished or names)[-8:])
            raise refuse(f"which run is meant? Give run=: {some}", "list_runs()")
        return unfinished[0]

    # --- who measures ---

    def why_not_measured_here(self, at: Setting) -> str | None:
        """None where this machine can measure the run's programs."""
        if not self.rules.measures:
            return "this server was started with --no-measure"
        if is_fake(at):
            return None
        if at.task is None:
            return "the run has no task, so nobody here knows how to measure its programs"
        return self.why_no_device(at.task)

    def why_no_device(self, task: Task) -> str | None:
        try:
            device_of(task.spec).require()
        except EvaluatorError as error:
            return str(error)
        return None

    # --- tasks ---

    def tasks(self) -> dict[str, str]:
        """Name -> what `load_task` takes."""
        return {name: name for name in bundled_tasks()} | {name: str(path) for name, path in self.rules.folders.items()}

    def task_place(self, name: str) -> str:
        """Raises:
        AgentError: no such task may be searched here.
        """
        known = self.tasks()
        if name in known:
            return known[name]
        folder = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100  # links stay: they may be what was named
        if self.rules.any_folder or folder in self.rules.folders.values():
            return str(folder)
        cure = "a folder of your own must be named by whoever starts the server: ksearch mcp --task FOLDER"
        raise refuse(f"no task {name!r} here. There are {', '.join(known)}; {cure}", "start_run() with one of these")

    # --- leases ---

    def remember(self, run_id: str, holder: Holder) -> None:
        """What it holds is given back when the server ends."""
        with self._lock:
            self._holders.add((run_id, holder))

    def close(self) -> None:
        self.closing.set()
        for run_id, holder in self._holders:
            with suppress(KSearchError):  # a store that has gone cannot be told; the leases are found dead
                Run(self.store, run_id).release(holder, "the agent's server ended")
        self.staffing.close()
