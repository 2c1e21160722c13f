"""The planner's short form, for small local models: about a quarter of the tokens, one kind of edit."""

from __future__ import annotations

from ksearch.prompts import common, taskparts
from ksearch.prompts.fit import Prompt, Section, fit
from ksearch.prompts.guides import headlines
from ksearch.prompts.template import Template, load
from ksearch.prompts.text import one_line, quoted, ratio
from ksearch.prompts.treelines import grouped, within
from ksearch.prompts.view import PromptView
from ksearch.types import Node, NodeStatus

MAX_PARENTS = 6  # to choose from: the best ones, and the root


def render_brief_plan(view: PromptView, max_tokens: int) -> Prompt:
    """The prompt for a plan, in short: only inserts are asked for. What else a reply holds is read as ever.

    Raises:
        PromptTooLong: task, form and frontier do not fit.
    """
    template, task, groups = load("plan_brief"), view.task, grouped(view.state.tree)
    done = view.evaluation(view.state.best_id)
    program = view.source_of(view.state.best_id) if view.state.best_id else task.baseline
    what = common.standing(done) if done else "the baseline itself"

    def source(limit: int) -> str:
        return common.sources(program, limit) if program else ""

    def tried(limit: int) -> str:
        return "\n".join(map(_outcome, within(list(groups.closed[::-1]), _outcome, limit)))

    sections = [
        common.fixed(
            template,
            "task",
            stable=True,
            title=one_line(task.title or task.name),
            definition=taskparts.short_definition(task, view.written_in),
        ),
        common.fixed(
            template, "form", stable=True, max_new_nodes=view.state.config.max_new_nodes, parents=_parents(view)
        ),
        common.section(template, "means", least="\n".join(f"- {m}" for m in headlines(view.guide)), stable=True),
        common.section(template, "closed", grow=tried if groups.closed else None, share=0.4, priority=1),
        common.section(template, "frontier", least="\n".join(_planned(n) for n in (*groups.active, *groups.frontier))),
        common.section(template, "best", grow=source, share=0.6, priority=2, what=what),
        _refused(template, view),
        common.fixed(template, "now", why=_why(view)),
    ]
    return fit(template.fill("system"), sections, max_tokens, "planner's brief prompt")


def _parents(view: PromptView) -> str:
    """Ids of the solved nodes with the fastest programs, then the root."""
    solved = [n for n in view.state.tree.values() if n.status is NodeStatus.SOLVED and n.program_id and n.speedup]
    solved.sort(key=lambda n: -(n.speedup.value if n.speedup else 0.0))
    return ", ".join([*(n.id for n in solved[: MAX_PARENTS - 1]), "root"])


def _outcome(node: Node) -> str:
    gain = f"{ratio(node.gain)} over {node.parent_id}" if node.gain else "no correct program"
    return f"- {node.id} {quoted(node.action.title, 120)} under {node.parent_id}: {gain}"


def _planned(node: Node) -> str:
    return f"- {node.id} {quoted(node.action.title, 120)} under {node.parent_id}"


def _refused(template: Template, view: PromptView) -> Section:
    return common.section(template, "refused", least="\n".join(one_line(r, 300) for r in view.refusals[-1:]))


def _why(view: PromptView) -> str:
    if len(view.state.tree) == 1:
        return "Nothing is tried yet: propose the first changes."
    return "Learn from what was tried, and propose changes to the best programs."
