"""A campaign: many tasks, one shared budget. All that it knows is in its runs' logs, one run for each task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ksearch.budget import tokens_committed, usd_committed
from ksearch.config import RunConfig
from ksearch.errors import BadInput, ConfigError
from ksearch.protocol import Budget
from ksearch.run import Run
from ksearch.service.allotting import Rules, Standing, Step, Steps, Unit, made_by, steps_of
from ksearch.service.tasklist import Listed
from ksearch.state import State
from ksearch.store import Store
from ksearch.types import Evaluation, Ratio

KEY = "campaign"  # in the context of each of its runs
NAME_CHARACTERS = 60  # of a campaign: the task's name has to fit beside it
_MORE_HELPS = ("budget: evaluations", "budget: attempts")
_SHARED = ("budget: usd", "budget: tokens", "budget: seconds")  # limits that all tasks spend from together


@dataclass(frozen=True, slots=True)
class Terms:
    """What a campaign was begun with, or goes on with. `config`: of each run, with {task} where its name belongs."""

    name: str
    place: str
    config: RunConfig
    evaluations: int
    least: int
    share: int

    @property
    def rules(self) -> Rules:
        money, tokens = self.config.usd is not None, self.config.tokens is not None
        unit = Unit.USD if money else Unit.TOKENS if tokens else Unit.EVALUATIONS
        return Rules(self.evaluations, self.least, self.share, unit)

    def with_totals(self, changes: Mapping[str, int]) -> Terms:
        """With other numbers of evaluations: in all, of each task first, at a time. The settings say the same."""
        changed = replace(self, **changes)  # type: ignore[arg-type]
        return replace(changed, config=self.config.model_copy(update={"evaluations": changed.evaluations}))

    def recorded(self) -> str:
        return json.dumps({**{k: getattr(self, k) for k in _RECORDED}, "config": self.config.model_dump(mode="json")})


_RECORDED = ("name", "place", "evaluations", "least", "share")


@dataclass(frozen=True, slots=True)
class Spent:
    """Of what all tasks share. `unpriced`: model calls whose price nobody knows."""

    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One task in the summary. `of_floor`: floor / time, the geometric mean over workloads that have a floor."""

    task: str
    run: str | None
    status: str
    speedup: Ratio | None = None
    of_floor: float | None = None
    evaluations: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(slots=True)
class Entry:
    """One task of a campaign and what is known of its run."""

    listed: Listed
    run_id: str
    standing: Standing
    line: Line
    begun: bool = False
    halted: str = ""  # paused, or its planner failed: to go on with it is a person's decision
    failed: bool = False  # set aside: it cannot be searched as it is


class Campaign:
    """The tasks of a list beside the runs that are in the store. Read once; afterwards `renew` after each change.

    Raises:
        BadInput: a run of the name that a task's needs is there and not of this campaign.
    """

    def __init__(self, store: Store, name: str, tasks: Sequence[Listed]) -> None:
        self.store, self.name = store, name
        self.gone: list[Line] = []  # tasks that are no longer in the list: what they spent is spent
        self.terms: Mapping[str, Any] | None = None  # as the last begun run records them
        self.entries = [self._entry(listed) for listed in tasks]
        expected = {e.run_id: e for e in self.entries}
        for info in store.runs():
            if not info.seq or not info.id.startswith(f"{name}."):
                continue
            steps = Steps()
            run = Run(store, info.id, watch=steps.see)  # each log is read once: there may be thousands
            found = campaign_of(run.state)
            entry = expected.get(info.id)
            if found is None or found["name"] != name:
                if entry:
                    raise BadInput(f"{store.name} holds a run {info.id} that is of no campaign: choose another --name")
                continue
            self.terms = found
            if entry:
                self._look(entry, run, tuple(steps.found))
            else:
                self.gone.append(_line(info.id.removeprefix(f"{name}."), run, "not in the list"))

    def _entry(self, listed: Listed) -> Entry:
        run_id = f"{self.name}.{listed.name}"[:100]
        return Entry(listed, run_id, Standing(listed.name), Line(listed.name, None, "waits"))

    def renew(self, entry: Entry, run: Run) -> None:
        """Look at a run again."""
        run.refresh()
        self._look(entry, run, steps_of(run.log()))

    def _look(self, entry: Entry, run: Run, steps: tuple[Step, ...]) -> None:
        state = run.state
        entry.begun, entry.failed = True, False
        entry.halted = state.paused or (state.ended if (state.ended or "").startswith("planner_failed") else "") or ""
        over = f"paused: {state.paused}" if state.paused else _over(state)
        entry.standing = Standing(entry.listed.name, made_by(state), over, steps)
        entry.line = _line(entry.listed.name, run, over or "rests")

    def set_aside(self, entry: Entry, why: str, *, failed: bool) -> None:
        """It gets nothing more for as long as this process lasts."""
        entry.failed = failed
        entry.standing = replace(entry.standing, over=why)
        entry.line = replace(entry.line, status=why)

    @property
    def lines(self) -> list[Line]:
        return [*(e.line for e in self.entries), *self.gone]

    @property
    def standings(self) -> list[Standing]:
        gone = [Standing(g.task, g.evaluations, g.status) for g in self.gone]
        return [*(e.standing for e in self.entries), *gone]

    @property
    def spent(self) -> Spent:
        return total([line.spent for line in self.lines])


def _over(state: State) -> str:
    """Why a run can use no more evaluations; empty while it can."""
    ended = state.ended or ""
    return "" if ended in (*_MORE_HELPS, *_SHARED) else ended


def shared_limit(state: State) -> str | None:
    """The limit of the whole campaign that ended a run."""
    return state.ended if state.ended in _SHARED else None


def total(parts: Sequence[Spent]) -> Spent:
    sums = {name: sum(getattr(p, name) for p in parts) for name in ("tokens", "usd", "seconds", "unpriced")}
    return Spent(**sums)


def campaign_of(state: State) -> Mapping[str, Any] | None:
    """What the log of a run says of the campaign that it belongs to."""
    text = state.context.get(KEY)
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else None


def recorded_terms(found: Mapping[str, Any]) -> Terms:
    """Raises:
    ConfigError: a later version wrote settings that this one does not know.
    """
    try:
        config = RunConfig.model_validate_json(json.dumps(found["config"]))
        return Terms(config=config, **{k: found[k] for k in _RECORDED})
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the settings of the campaign cannot be read ({error}): upgrade K-Search to go on"
        ) from error


def check_name(name: str) -> str:
    """Raises:
    BadInput: it cannot begin the names of runs.
    """
    plain = all((c.isalnum() and c.isascii()) or c in "_-" for c in name)
    if not plain or not name[:1].isalnum() or len(name) > NAME_CHARACTERS:
        raise BadInput(
            f"{name!r} cannot name a campaign: use 1 to {NAME_CHARACTERS} letters, digits, '_' or '-', beginning with "
            "a letter or digit (--name)"
        )
    return name


def settings_of(terms: Terms, listed: Listed, budget: Budget) -> RunConfig:
    """The settings of one run: {task} in who answers, and in what is recorded, is the task's name."""
    config = terms.config
    named = {
        key: value.replace("{task}", listed.name)
        for key in ("model", "planner_model", "writer_model", "record")
        if (value := getattr(config, key))
    }
    writers = tuple(w.replace("{task}", listed.name) for w in config.writers)
    limits = {
        "evaluations": budget.evaluations,
        "tokens": budget.tokens,
        "usd": budget.usd,
        "minutes": None if budget.seconds is None else budget.seconds / 60,
    }
    return config.model_copy(update={**named, "writers": writers, **limits, "task": listed.where})


def budget_for(terms: Terms, run: State | None, left: int, spent: Spent) -> Budget:
    """A run may spend all that is left of what is shared, `left` evaluations too: it is the only one at work. Its part
    ends by the campaigner's word, which leaves the action at hand open."""
    config = terms.config
    mine = spent_by(run) if run else Spent()
    evaluations = left + (made_by(run) if run else 0)
    seconds = None if config.minutes is None else max(0.0, config.minutes * 60 - spent.seconds + mine.seconds)
    return Budget(
        evaluations,
        config.attempts,
        None if config.tokens is None else max(0, config.tokens - spent.tokens + mine.tokens),
        None if config.usd is None else max(0.0, config.usd - spent.usd + mine.usd),
        seconds,
    )


def spent_by(state: State) -> Spent:
    return Spent(tokens_committed(state), usd_committed(state), state.worked_s, state.unpriced)


def _line(task: str, run: Run, status: str) -> Line:
    state = run.state
    best = state.evaluations.get(state.best_id or "")
    speedup = best.speedup if best else None
    return Line(task, run.id, status, speedup, _of_floor(best), state.evaluated, spent_by(state))


def _of_floor(best: Evaluation | None) -> float | None:
    ratios = [w.floor_ms / w.latency_ms for w in best.workloads if w.floor_ms and w.latency_ms] if best else []
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


@dataclass(frozen=True, slots=True)
class Overall:
    """Over the tasks that were tried (at least one evaluation). Without a faster program a task counts as 1x: its
    baseline is there. Shares are of speedups by their value."""

    tried: int
    passed: int
    geometric_mean: float | None
    above_1: float | None
    above_1_5: float | None
    above_2: float | None


def overall(lines: Sequence[Line]) -> Overall:
    tried = [line for line in lines if line.evaluations]
    if not tried:
        return Overall(0, 0, None, None, None, None)
    values = [max(1.0, line.speedup.value) if line.speedup else 1.0 for line in tried]
    shares = [sum(v > limit for v in values) / len(values) for limit in (1, 1.5, 2)]
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return Overall(len(tried), sum(line.speedup is not None for line in tried), mean, *shares)


def as_json(campaign: Campaign, why: str) -> dict[str, Any]:
    """The summary for programs."""
    tasks = [{**asdict(line), "speedup": asdict(line.speedup) if line.speedup else None} for line in campaign.lines]
    over_all = {**asdict(overall(campaign.lines)), "spent": asdict(campaign.spent)}
    return {"campaign": campaign.name, "why": why, "tasks": tasks, "overall": over_all}
