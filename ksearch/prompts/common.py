"""Pieces that the planner's and the writer's prompts share."""

from __future__ import annotations

from collections.abc import Callable

from ksearch.budget import evaluations_committed, tokens_committed, usd_committed
from ksearch.prompts.fit import Section
from ksearch.prompts.taskparts import definition
from ksearch.prompts.template import Template
from ksearch.prompts.text import ends, fenced, head, one_line, ratio, score
from ksearch.prompts.view import PromptView
from ksearch.state import State, working_s
from ksearch.types import Evaluation, Program

MANY = 10**9  # characters: no limit
Body = Callable[[int], str]


def section(
    template: Template,
    name: str,
    *,
    least: str = "",
    grow: Body | None = None,
    share: float = 1.0,
    priority: int = 5,
    stable: bool = False,
    **values: object,
) -> Section:
    """A section of a template with a body; without one, the section is left out."""

    if not least and grow is None:
        return Section(name, stable=stable)

    def whole(body: str) -> str:
        return template.fill(name, body=body, **values) if body else ""

    frame = len(whole("x")) - 1
    grown = None if grow is None else lambda limit: whole(grow(limit - frame)) if limit > frame else ""
    return Section(name, whole(least), grown, share, priority, stable)


def fixed(template: Template, name: str, *, stable: bool = False, **values: object) -> Section:
    return Section(name, template.fill(name, **values), stable=stable)


def lines_within(text: str, wrap: Callable[[str], str]) -> Body:
    """A body that shows the start of a text, wrapped, as far as the limit goes."""
    return lambda limit: shrink(text, wrap, head, limit)


def shrink(text: str, wrap: Callable[[str], str], cut: Callable[[str, int], str], limit: int) -> str:
    """The most of a text whose wrapped form keeps to the limit; empty if nothing useful fits."""
    room = limit
    while room > 40:
        shown = cut(text, room)
        if shown and len(wrapped := wrap(shown)) <= limit:
            return wrapped
        room = min(room - 20, room - (len(wrap(shown)) - limit) if shown else room // 2)
    return ""


def task_section(template: Template, view: PromptView) -> Section:
    title = one_line(view.task.title or view.task.name)
    return section_of_task(template, title, definition(view.task, 1500, 12), lambda: definition(view.task))


def section_of_task(template: Template, title: str, least: str, whole: Callable[[], str]) -> Section:
    def grow(limit: int) -> str:
        text = template.fill("task", title=title, definition=whole())
        return text if len(text) <= limit else ""

    return Section("task", template.fill("task", title=title, definition=least), grow, priority=0, stable=True)


def reference_section(template: Template, view: PromptView) -> Section:
    grow = lines_within(view.reference.strip(), lambda t: fenced(t, "python")) if view.reference.strip() else None
    return section(template, "reference", grow=grow, share=0.5, priority=1, stable=True)


def hardware_section(template: Template, view: PromptView) -> Section:
    sheet = view.hardware.strip()
    grow = lines_within(sheet, lambda t: fenced(t, "text")) if sheet else None
    return section(template, "hardware", grow=grow, share=0.4, priority=2, stable=True)


def sources(program: Program, limit: int = MANY) -> str:
    """A program's files, each in its own block; where they do not fit, the longest are cut in the middle."""
    named = len(program.sources) > 1
    each = limit
    while each > 0:
        blocks = []
        for path, text in program.sources.items():
            label = f"FILE: {one_line(path)}\n" if named else ""
            blocks.append(label + fenced(ends(text, each), program.language))
        if len(whole := "\n\n".join(blocks)) <= limit:
            return whole
        each = each - max(40, (len(whole) - limit) // len(blocks)) if each < MANY else 0
    return ""


def standing(done: Evaluation | None) -> str:
    """A program's place in one phrase."""
    if done is None or done.speedup is None:
        return "not measured"
    return f"score {score(done.speedup)} ({ratio(done.speedup)} over the baseline)"


def rivals(view: PromptView, program_id: str | None) -> dict[str, str]:
    """Programs that a table compares with, and what they are called there."""
    cycle = view.state.cycles.get(view.request.node_id)
    named = {  # the last name given to an id stays
        view.state.best_id: "run's best",
        cycle.best_id if cycle else None: "cycle's best",
        view.parent_program_id: "parent",
    }
    return {id: name for id, name in named.items() if id and id != program_id}


def budget_left(state: State) -> str:
    """What the run may still spend, in words."""
    budget = state.config.budget
    left = [
        f"{max(0, budget.evaluations - evaluations_committed(state))} of {budget.evaluations} evaluations",
        f"{max(0, budget.max_attempts - state.attempts)} of {budget.max_attempts} attempts",
    ]
    if budget.tokens is not None:
        left.append(f"{max(0, budget.tokens - tokens_committed(state)):,} of {budget.tokens:,} tokens")
    if budget.usd is not None:
        left.append(f"{max(0.0, budget.usd - usd_committed(state)):.2f} of {budget.usd:.2f} USD")
    if budget.seconds is not None:
        left.append(f"{max(0.0, budget.seconds - working_s(state, state.last_at)) / 60:.0f} minutes of work")
    return ", ".join(left)
