"""campaign: many tasks, one shared budget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt
from ksearch.cli import search as s
from ksearch.cli.boundary import INTERRUPTED, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksearch.cli.driving import Stop
    from ksearch.run import Run
    from ksearch.service.allotting import Grant
    from ksearch.service.campaigns import Campaign, Entry, Terms
    from ksearch.service.desks import Staff
    from ksearch.service.tasklist import Listed
    from ksearch.store import Store

OWN = ("place", "name", "evaluations", "least", "share", "lint", "show", "config", "store", "as_json", "quiet")


Place = Annotated[
    str, typer.Argument(metavar="FOLDER|LIST", help="Of task folders, or a text file with one task on each line.")
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Default: that of FOLDER or LIST.")]
Evaluations = Annotated[int | None, typer.Option(min=1, help="Budget of all tasks together. Default: 120 for each.")]
Tokens = Annotated[int | None, typer.Option(min=0, help="Budget of all together: tokens of model calls.")]
Usd = Annotated[float | None, typer.Option(min=0, help="Budget of all together: money for model calls.")]
Minutes = Annotated[float | None, typer.Option(min=0, help="Budget of all together: working time.")]
Least = Annotated[int | None, typer.Option(min=1, help="Evaluations that each task gets first. Default: 20.")]
Share = Annotated[int | None, typer.Option(min=1, help="Evaluations given at a time after that. Default: 20.")]
Lint = Annotated[
    bool, typer.Option("--lint/--no-lint", help="Check each task's reference just before its first evaluation.")
]
Show = Annotated[bool, typer.Option("--show", help="Print the summary, and do nothing else.")]


def campaign(
    place: Place,
    name: Name = None,
    model: s.Model = None,
    planner_model: s.PlannerModel = None,
    writer_model: s.WriterModel = None,
    base_url: s.BaseUrl = None,
    key_env: s.KeyEnv = None,
    record: s.Record = None,
    track: s.Track = None,
    parallel: s.AtOnce = None,
    gpus: s.Gpus = None,
    pool: s.Pool = None,
    ray_address: s.RayAddress = None,
    gpu_model: s.GpuModel = None,
    evaluations: Evaluations = None,
    tokens: Tokens = None,
    usd: Usd = None,
    minutes: Minutes = None,
    least: Least = None,
    share: Share = None,
    stagnation: s.Stagnation = None,
    language: s.Language = None,
    lint: Lint = True,
    show: Show = False,
    config: opt.ConfigOption = None,
    store: opt.StoreOption = None,
    quiet: opt.QuietOption = False,
    as_json: opt.JsonOption = False,
) -> int:
    """Search many tasks with one shared budget, which moves to where it still pays. The same command goes on with it.

    First each task gets a few evaluations; after that, those that gain get larger parts than those that do not.
    Each task is a run of its own, NAME.TASK: every other command works on it. In --model, --record and the like,
    {task} stands for the task's name. Ctrl-C once finishes the step at hand and stops; nothing is lost.

    \b
    Examples:
      ksearch campaign tasks/ --model openai:gpt-5 --evaluations 400 --usd 20
      ksearch campaign tonight.txt --model command:claude --least 5
      ksearch campaign tonight.txt --show
    """
    return _campaign(dict(locals()))


def _campaign(given: dict[str, Any]) -> int:
    from ksearch.cli.opening import opened
    from ksearch.service.campaigns import Campaign, check_name
    from ksearch.service.tasklist import read_tasks

    place, as_json = given["place"], given["as_json"]
    tasks = read_tasks(place)
    named = check_name(given["name"] or Path(place).resolve().stem)
    with opened(given["store"], readonly=given["show"]) as opened_store:
        if given["show"]:
            return _finish(Campaign(opened_store, named, tasks), "", as_json)
        flags = {k: v for k, v in given.items() if k not in OWN}
        totals = {k: given[k] for k in ("evaluations", "least", "share")}
        wanted = Wanted(named, str(Path(place).resolve()), flags, totals, given["config"], bool(given["name"]))
        loud = not (given["quiet"] or as_json)
        return _run(opened_store, tasks, wanted, lint=given["lint"], loud=loud, as_json=as_json)


@dataclass(frozen=True)
class Wanted:
    """What the command line says; None where it says nothing."""

    name: str
    place: str
    flags: dict[str, Any]
    totals: dict[str, int | None]
    config: str | None
    named: bool  # the campaign, by --name


def _run(store: Store, tasks: tuple[Listed, ...], wanted: Wanted, *, lint: bool, loud: bool, as_json: bool) -> int:
    from ksearch.cli.driving import Stop, listening
    from ksearch.service.campaigning import Campaigner, alone
    from ksearch.service.campaigns import Campaign
    from ksearch.service.desks import staffed

    with alone(str(store.name), wanted.name):
        found = Campaign(store, wanted.name, tasks)
        terms = _terms(found, wanted, len(tasks))
        if loud:
            say(_preflight(terms, len(tasks)))
        stop = Stop()
        console = Console(stop, loud, terms)
        try:
            with listening(stop):
                why = Campaigner(found, terms, console, partial(staffed, tell=say), lint=lint).carry_on()
        except KeyboardInterrupt:
            for entry in found.entries:
                if console.at and console.at.id == entry.run_id:
                    found.renew(entry, console.at)
            _finish(found, "stopped", as_json)
            say("stopped; nothing is lost. The same command goes on")
            return INTERRUPTED
    return _finish(found, why, as_json)


def _terms(found: Campaign, wanted: Wanted, tasks: int) -> Terms:
    """As it was begun, with what the command line changes; a new one by the settings."""
    from ksearch.errors import BadInput
    from ksearch.service.campaigns import Terms, recorded_terms
    from ksearch.service.fleets import check_where
    from ksearch.service.preflight import objection

    loaded = s.load(wanted.flags, wanted.config)
    given = {k: getattr(loaded.config, k) for k, v in wanted.flags.items() if v is not None}
    if found.terms:
        terms = recorded_terms(found.terms)
        if terms.place != wanted.place and not wanted.named:
            raise BadInput(
                f"the store holds a campaign {found.name} of {terms.place}: choose another --name for this one, or "
                f"--name {found.name} if it was moved here"
            )
        terms = replace(terms, config=terms.config.model_copy(update=given))
        say(f"campaign {found.name} goes on as it was begun{_changed(wanted)}")
    else:
        total = wanted.totals["evaluations"] or loaded.config.evaluations * tasks
        terms = Terms(found.name, wanted.place, loaded.config, total, min(20, max(1, total // tasks)), 20)
    terms = terms.with_totals({k: v for k, v in wanted.totals.items() if v is not None})
    config = terms.config
    check_where(config)
    if why := objection(config):
        raise BadInput(why)
    if "agent" in (config.planner, *config.all_writers):
        raise BadInput("a campaign needs models that answer by themselves: name them with --model (or `model` in the "
                       "settings file)")  # fmt: skip
    return terms


def _changed(wanted: Wanted) -> str:
    names = [k for k, v in {**wanted.totals, **wanted.flags}.items() if v is not None]
    return f"; changed now: {', '.join(names)}" if names else ""


def _preflight(terms: Terms, tasks: int) -> str:
    from ksearch.service.preflight import expected

    first = min(tasks, terms.evaluations // terms.least)
    config = terms.config
    limits = [f"{terms.evaluations:,} evaluations"]
    limits += [f"{config.usd:g} USD"] if config.usd is not None else []
    limits += [f"{config.tokens:,} tokens"] if config.tokens is not None else []
    limits += [f"{config.minutes:g} minutes"] if config.minutes is not None else []
    text = f"campaign {terms.name}: {tasks:,} task{'s' * (tasks != 1)}, {', '.join(limits)} for all together; "
    text += f"{terms.least} evaluation{'s' * (terms.least != 1)} for each first, then {terms.share} at a time"
    short = f"\nnote: that is enough for the first {first:,} tasks only: raise --evaluations or lower --least"
    return "\n".join([text + (short if first < tasks else ""), *expected(config, min(first, tasks))])


@dataclass
class Console:
    """Shows what goes on, line by line."""

    stop: Stop
    loud: bool
    terms: Terms
    at: Run | None = None  # the run that has its turn
    told: set[str] = field(default_factory=set)  # what is odd about replies, once for all tasks

    def gives(self, campaign: Campaign, grant: Grant) -> None:
        self.stop.check()
        if self.loud:
            made = sum(st.made for st in campaign.standings)
            part = f"+{grant.evaluations} evaluation{'s' * (grant.evaluations != 1)} ({grant.why})"
            print(f"[{made}/{self.terms.evaluations}] {grant.task}: {part}", flush=True)

    def fails(self, entry: Entry, why: str) -> None:
        if self.loud:
            print(f"  {entry.listed.name} is set aside: {why}", flush=True)

    def carry(self, run: Run, staff: Staff, enough: Callable[[], bool]) -> None:
        from ksearch.cli.display import Lines
        from ksearch.cli.driving import drive_here, never

        lines = Lines(self.told)

        def show(event: Any, state: Any) -> None:
            if text := lines.bare(event, state):
                print(f"  {run.id.partition('.')[2]} {text}", flush=True)

        self.at = run
        if self.loud:
            run.watchers.append(show)
        self.stop.enough = enough
        try:
            drive_here(run, staff, self.stop)
        except KeyboardInterrupt:
            if self.stop.asked:
                raise
        finally:
            self.stop.enough = never


def _finish(found: Campaign, why: str, as_json: bool) -> int:
    from ksearch.cli.campaign_table import summary
    from ksearch.service.campaigns import as_json as summary_json

    if as_json:
        opt.print_json(summary_json(found, why))
    else:
        print(summary(found, why))
    bad = any(e.failed or e.halted or (e.standing.over and not e.line.evaluations) for e in found.entries)
    return 1 if bad else 0
