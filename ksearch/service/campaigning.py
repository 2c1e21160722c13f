"""Carrying a campaign on: one task after the other gets a part of the budget, until it is spent.

Whoever comes after a kill reads from the tasks' logs what was made, and gives on by the same rules. While a task has
its turn, its run may spend all that is left; when its part is used up the run rests, in the middle of an action if need
be. At the end of the budget every run is told so, and closes its open actions with their best.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fcntl import LOCK_EX, LOCK_NB, lockf
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from ksearch import events as ev
from ksearch.config import Loaded, RunConfig
from ksearch.errors import BadInput, EvaluatorError, StoreError, TaskError
from ksearch.lint import lint_folder
from ksearch.run import Run
from ksearch.service.allotting import Grant, made_by, next_grant
from ksearch.service.beginning import begin, setting
from ksearch.service.campaigns import KEY, Campaign, Entry, Terms, budget_for, settings_of, shared_limit
from ksearch.service.desks import Staff
from ksearch.tasks import Task, load_task, why_not_here

AUTHOR = "campaign"
_WHERE = ("parallel", "gpus", "pool", "ray_address", "gpu_model")  # may change while a campaign goes on
HALTS = 2  # tasks in a row that paused before anything was measured: what stops one will stop all

Staffing = Callable[[RunConfig, Task | None], AbstractContextManager[Staff]]


class Face(Protocol):
    """Who shows what goes on, and can stop it."""

    def gives(self, campaign: Campaign, grant: Grant) -> None:
        """A task gets a part of the budget."""

    def fails(self, entry: Entry, why: str) -> None:
        """A task cannot be searched."""

    def carry(self, run: Run, staff: Staff, enough: Callable[[], bool]) -> None:
        """Carry a run forward until it is done, paused or stopped, or it is enough for now."""


class Campaigner:
    """One process that carries a campaign forward."""

    def __init__(self, campaign: Campaign, terms: Terms, face: Face, staffing: Staffing, *, lint: bool = True) -> None:
        self.campaign, self.terms, self.face, self.staffing = campaign, terms, face, staffing
        self.lint = lint
        self._halts: list[str] = []
        for entry in campaign.entries:
            if entry.halted:  # to go on is to want it to go on
                entry.standing = replace(entry.standing, over="")

    def carry_on(self) -> str:
        """Until the budget is spent or no task can use it. Returns why it ended.

        Raises:
            ModelSetupError: a model cannot be used; nothing was spent on it.
        """
        why: str | None = None
        while why is None:
            why = self._shared_spent()
            if why is None:
                given = next_grant(self.campaign.standings, self.terms.rules)
                why = self._visit(self._entry(given.task), given) if given else self._nothing_left()
        if why.startswith("budget: "):
            self._close()
        return why

    @property
    def _left(self) -> int:
        return max(0, self.terms.evaluations - sum(s.made for s in self.campaign.standings))

    def _close(self) -> None:
        """Nothing is left: runs that rest in the middle of an action are ended with what they have."""
        for entry in self.campaign.entries:
            if entry.begun and not entry.standing.over:
                run = Run(self.campaign.store, entry.run_id)
                if not run.state.ended:
                    run.command(ev.SetBudget(budget_for(self.terms, run.state, 0, self.campaign.spent)), AUTHOR)
                    self.campaign.renew(entry, run)

    def _entry(self, task: str) -> Entry:
        return next(e for e in self.campaign.entries if e.listed.name == task)

    def _shared_spent(self) -> str | None:
        config, spent = self.terms.config, self.campaign.spent
        limits = {
            "usd": (config.usd, spent.usd),
            "tokens": (config.tokens, spent.tokens),
            "minutes": (config.minutes, spent.seconds / 60),
        }
        for name, (limit, used) in limits.items():
            if limit is not None and used >= limit:
                return f"budget: {name}"
        return None

    def _nothing_left(self) -> str:
        return "budget: evaluations" if not self._left else "no task can use more of the budget"

    def _visit(self, entry: Entry, grant: Grant) -> str | None:
        """Give a task its part and carry its run on. Returns why the campaign ends with it, if it does."""
        self.face.gives(self.campaign, grant)
        before = entry.standing.made
        try:
            run = self._carry(entry, grant)
        except (TaskError, EvaluatorError) as error:
            self.campaign.set_aside(entry, str(error), failed=True)
            self.face.fails(entry, str(error))
            return None
        self.campaign.renew(entry, run)
        if entry.halted and entry.standing.made == before:
            self._halts.append(entry.halted)
            if len(self._halts) >= HALTS:
                return f"{HALTS} tasks in a row came to nothing, the last one because of: {entry.halted}"
        else:
            self._halts.clear()
        if run.state.ended and not entry.standing.over and entry.standing.made == before:
            # Such as a limit of its own: another turn would change nothing.
            self.campaign.set_aside(entry, run.state.ended, failed=False)
        return shared_limit(run.state)

    def _carry(self, entry: Entry, grant: Grant) -> Run:
        if not entry.begun and self.lint:
            check(entry.listed.where)
        task = load_task(entry.listed.where)
        if not entry.begun and (why := why_not_here(task) or _unfit(task, self.terms.config)):
            raise TaskError(why)
        run = Run(self.campaign.store, entry.run_id) if entry.begun else None
        budget = budget_for(self.terms, run.state if run else None, self._left, self.campaign.spent)
        config = settings_of(self.terms, entry.listed, budget)
        if run:
            as_begun = setting(run.state).config  # its folder has to be as it was, too
            config = as_begun.model_copy(update={name: getattr(self.terms.config, name) for name in _WHERE})
        if task.spec.device == "cpu":  # how many GPUs to use is said to the other tasks of the list
            config = config.model_copy(update={"gpus": None})
        with self.staffing(config, task) as staff:
            if run is None:
                loaded = Loaded(config, {**dict.fromkeys(RunConfig.model_fields, f"campaign {self.terms.name}")})
                extra = {KEY: self.terms.recorded()}
                run = begin(self.campaign.store, entry.run_id, loaded, staff.machine(), extra)
            else:
                if entry.halted:
                    run.command(ev.Resume(), AUTHOR)
                if run.state.config.budget != budget:
                    run.command(ev.SetBudget(budget), AUTHOR)
            entry.begun = True
            there, goal = run, made_by(run.state) + grant.evaluations
            self.face.carry(run, staff, lambda: made_by(there.state) >= goal)
        return run


def _unfit(task: Task, config: RunConfig) -> str:
    """Why the campaign's settings do not fit a task; others of the list may be fit for them."""
    language, taken = config.language, task.spec.languages
    return f"it takes {', '.join(taken)}, and not --language {language}" if language and language not in taken else ""


def check(where: str) -> None:
    """Lint without programs, just before the first money is spent.

    Raises:
        TaskError: a check failed.
    """
    report = lint_folder(where)
    if failed := report.failures:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise TaskError(f"lint: {first.check}: {first.detail}{more}. See `ksearch lint {where}`")


@contextmanager
def alone(store_name: str, name: str) -> Iterator[None]:
    """Hold a campaign: two that share out one budget would give it twice. A killed process lets go at once.

    Raises:
        BadInput: another process of this machine carries it on.
    """
    digest = sha256(f"{store_name}\n{name}".encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"ksearch-campaign-{digest}.lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}. Set TMPDIR to a folder that you can write to") from error
    try:
        try:
            lockf(fd, LOCK_EX | LOCK_NB)
        except OSError:
            holder = os.read(fd, 20).decode(errors="replace").strip() or "?"
            raise BadInput(
                f"campaign {name} is being carried on already, by process {holder}: watch it with `ksearch runs`, or "
                "stop that process (Ctrl-C loses nothing)"
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(fd)
