"""The planner's prompt: the tree, what the last cycle taught, and how good its predictions have been."""

from __future__ import annotations

import math
from typing import Any

from ksearch import tree as trees
from ksearch.prompts import common
from ksearch.prompts.fit import Prompt, Section, fit
from ksearch.prompts.plan_brief import render_brief_plan
from ksearch.prompts.profiles import profile_lines
from ksearch.prompts.template import Template, load
from ksearch.prompts.text import cell, clip, fenced, one_line, plural, quoted, ratio, times
from ksearch.prompts.trajectory import attempt_line, log_block, table
from ksearch.prompts.treelines import (
    Grouped,
    active_line,
    by_priority,
    closed_line,
    grouped,
    open_details,
    open_line,
    outcome,
    plans_elsewhere,
    within,
)
from ksearch.prompts.view import PromptView
from ksearch.state import CLOSED, EMPTY
from ksearch.types import Node, NodeStatus, Verdict

DEFAULT_MAX_TOKENS = 24_000
_WHY = {
    CLOSED: "A cycle has closed: learn from it and edit the tree.",
    EMPTY: "The frontier is empty: insert actions that can be taken now, or answer with no edits to end the run.",
}
_START = "The tree is empty: propose the first actions under the root."


def render_plan(view: PromptView, max_tokens: int = DEFAULT_MAX_TOKENS, *, brief: bool = False) -> Prompt:
    """The prompt for a plan.

    Args:
        view: the request, the state and the texts around it.
        max_tokens: limit of system and user message together, estimated at 3.5 characters a token.
        brief: the short form, for small local models.

    Raises:
        PromptTooLong: what must be there (rules, task, reply form, every frontier action) does not fit.
    """
    if brief:
        return render_brief_plan(view, max_tokens)
    template = load("plan")
    groups = grouped(view.state.tree)
    sections = [
        _rules(template, view),
        common.task_section(template, view),
        common.reference_section(template, view),
        common.hardware_section(template, view),
        common.fixed(template, "form", body=view.reply_form.strip(), stable=True),
        _closed(template, view, groups),
        _active(template, view, groups),
        _waiting(template, groups),
        _frontier(template, groups),
        _calibration(template, groups),
        _best(template, view),
        _cycle(template, view),
        _said(template, view),
        _assessment(template, view),
        _refused(template, view),
        _now(template, view, groups),
    ]
    return fit(template.fill("system"), sections, max_tokens, "planner's prompt")


def _rules(template: Template, view: PromptView) -> Section:
    config = view.state.config
    names = [cell(w.name) for w in view.task.workloads if w.timed]
    return common.fixed(
        template,
        "rules",
        stable=True,
        max_difficulty=config.max_difficulty,
        stagnation=config.stagnation,
        attempt_limit=3 * config.stagnation,
        max_new_nodes=config.max_new_nodes,
        mean=view.task.mean,
        workloads=", ".join(names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else ""),
    )


def _frontier(template: Template, groups: Grouped) -> Section:
    """Every line, always; rationale and notes of the first ones as far as they fit."""
    lines = [open_line(n) for n in groups.frontier]
    details = [open_details(n) for n in groups.frontier]

    def grow(limit: int) -> str:
        room = limit - len("\n".join(lines))
        shown = []
        for line, detail in zip(lines, details, strict=True):
            taken = detail if len(detail) <= room else ""
            room -= len(taken)
            shown.append(line + taken)
        return "\n".join(shown)

    least = "\n".join(lines) or "(empty)"
    count = plural(len(lines), "open action")
    return common.section(
        template, "frontier", least=least, grow=grow if lines else None, share=0.2, priority=3, count=count
    )


def _active(template: Template, view: PromptView, groups: Grouped) -> Section:
    lines = [*(active_line(view.state, n) for n in groups.active), *plans_elsewhere(view.state, view.request)]
    return common.section(template, "active", least="\n".join(lines))


def _waiting(template: Template, groups: Grouped) -> Section:
    return common.section(
        template, "waiting", grow=lambda limit: _node_list(list(groups.waiting), limit), share=0.1, priority=4
    )


def _node_list(nodes: list[Node], limit: int) -> str:
    taken = within(nodes, open_line, limit - 40)
    left_out = len(nodes) - len(taken)
    lines = [open_line(n) for n in taken] + ([f"- and {left_out} more"] if left_out else [])
    return "\n".join(lines) if taken else ""


def _closed(template: Template, view: PromptView, groups: Grouped) -> Section:
    best_id = view.state.best_id

    def line(node: Node) -> str:
        notes = f"\n  notes: {one_line(node.notes, 200)}" if node.notes else ""
        return closed_line(node, best_id) + notes

    def grow(limit: int) -> str:
        taken = {n.id for n in within(by_priority(view.state, groups), line, limit - 60)}
        left_out = len(groups.closed) - len(taken)
        lines = [line(n) for n in groups.closed if n.id in taken]
        lines += [f"- and {left_out} more, less telling ones"] if left_out else []
        return "\n".join(lines) if taken else ""

    counts: dict[str, Any] = {
        "solved": sum(n.status is NodeStatus.SOLVED for n in groups.closed),
        "rejected": sum(n.status is NodeStatus.REJECTED for n in groups.closed),
        "pruned": groups.pruned,
    }
    least = f"{plural(len(groups.closed), 'action')} tried." if groups.closed or groups.pruned else ""
    return common.section(
        template, "closed", least=least, grow=grow if groups.closed else None, share=0.3, priority=1, **counts
    )


def _calibration(template: Template, groups: Grouped) -> Section:
    """Each prediction beside its outcome, and how far off they are on the whole."""
    told = [n for n in groups.closed if n.action.predicted_speedup]
    solved = [n for n in told if n.gain]
    rejected = len(told) - len(solved)
    if not told:
        return common.section(template, "calibration")
    summary = f"{plural(len(told), 'prediction')}: {len(solved)} solved, {rejected} without a passing program."
    if solved:
        mean = math.exp(sum(map(_log_ratio, solved)) / len(solved))
        hit = sum(n.gain.high >= (n.action.predicted_speedup or 0) for n in solved if n.gain)
        summary += (
            f" Where solved, the measured gain was {mean:.2f} times the predicted one (geometric mean); "
            f"{hit} of {len(solved)} reached their prediction."
        )

    def line(node: Node) -> str:
        outcome = ratio(node.gain) if node.gain else "no passing program"
        return f"- {node.id}: predicted {times(node.action.predicted_speedup or 0)}, measured {outcome}"

    def grow(limit: int) -> str:
        return "\n".join([summary, *(line(n) for n in within(told[::-1], line, limit - len(summary) - 1))])

    return common.section(template, "calibration", least=summary, grow=grow, share=0.1, priority=4)


def _log_ratio(node: Node) -> float:
    """Log of measured / predicted gain."""
    predicted = node.action.predicted_speedup
    return math.log(node.gain.value / predicted) if node.gain and predicted else 0.0


def _best(template: Template, view: PromptView) -> Section:
    """Where the best stands on each workload, then its code as far as it fits."""
    best_id = view.state.best_id
    done = view.evaluation(best_id)
    program = view.source_of(best_id) if best_id else view.task.baseline
    what = common.standing(done) if best_id else "the baseline itself, score 100"
    numbers = "\n\n".join(p for p in (table(view, done, {}, limit=40), profile_lines(done)) if p) if done else ""

    def grow(limit: int) -> str:
        code = common.sources(program, limit - len(numbers) - 2) if program else ""
        return "\n\n".join(p for p in (numbers, code) if p)

    least = table(view, done, {}, limit=6) if done else ""
    return common.section(template, "best", least=least, grow=grow, share=0.4, priority=2, what=what)


def _cycle(template: Template, view: PromptView) -> Section:
    """All attempts in a line each, tables of the telling ones, logs of the failed ones: the newest first."""
    if not view.attempts or view.request.why != CLOSED:
        return common.section(template, "cycle")
    node = view.node
    came_of = f"Outcome: {', '.join(outcome(node, view.state.best_id))}"
    numbered = list(enumerate(view.attempts, 1))
    least = "\n".join([came_of, *(attempt_line(view.state, i, a, 120) for i, a in numbered)])
    full = "\n".join([came_of, *(attempt_line(view.state, i, a) for i, a in numbered)])
    extras = [piece for i, _ in _telling(view) if (piece := _measured(view, i))]

    def grow(limit: int) -> str:
        text = full if len(full) <= limit else least
        for extra in extras:
            if len(text) + len(extra) + 2 <= limit:
                text += f"\n\n{extra}"
        return text

    title = f"{node.id} {quoted(node.action.title, 120)}"
    return common.section(template, "cycle", least=least, grow=grow, share=0.5, priority=0, node=title)


def _telling(view: PromptView) -> list[tuple[int, Verdict | None]]:
    """Attempts worth details: the cycle's best, then the newest; of each kind of failure at most two."""
    attempts = view.attempts
    best = [i for i, a in enumerate(attempts) if a.judged and a.judged.improved][-1:]
    chosen: list[tuple[int, Verdict | None]] = [(i, attempts[i].verdict) for i in best]
    for i in range(len(attempts) - 1, -1, -1):
        verdict = attempts[i].verdict
        if i not in best and sum(v is verdict for _, v in chosen) < 2:
            chosen.append((i, verdict))
    return chosen


def _measured(view: PromptView, index: int) -> str:
    attempt = view.attempts[index]
    done = view.evaluation(attempt.program_id)
    if done is None or attempt.verdict is not done.verdict:
        return ""
    numbers = table(view, done, common.rivals(view, attempt.program_id), limit=24)
    log = log_block(done, 1600) if done.verdict is not Verdict.PASSED else ""
    body = "\n\n".join(p for p in (numbers, log) if p)
    return f"Attempt {index + 1}, {attempt.verdict}:\n\n{body}" if body else ""


def _said(template: Template, view: PromptView) -> Section:
    lines = [
        f"- {one_line(r.author, 40)}{f' on {r.node_id}' if r.node_id else ''}: {quoted(r.text, 400)}"
        for r in view.remarks[-12:]
    ]
    return common.section(
        template, "remarks", grow=lambda limit: "\n".join(_newest(lines, limit)), share=0.1, priority=3
    )


def _newest(lines: list[str], limit: int) -> list[str]:
    while lines and len("\n".join(lines)) > limit:
        lines = lines[1:]
    return lines


def _assessment(template: Template, view: PromptView) -> Section:
    text = clip(view.assessment.strip(), 3000)
    grow = common.lines_within(text, lambda t: fenced(t, "text")) if text else None
    return common.section(template, "assessment", grow=grow, share=0.1, priority=3)


def _refused(template: Template, view: PromptView) -> Section:
    least = "\n".join(f"- {quoted(reason, 600)}" for reason in view.refusals[-3:])
    return common.section(template, "refused", least=least)


def _now(template: Template, view: PromptView, groups: Grouped) -> Section:
    why = _START if len(view.state.tree) == 1 else _WHY.get(view.request.why, "")
    return common.fixed(
        template,
        "now",
        left=common.budget_left(view.state),
        why=why,
        max_new_nodes=view.state.config.max_new_nodes,
        ids=_ids(groups),
    )


def _ids(groups: Grouped) -> str:
    """What an edit may name, close to the answer: models copy ids from wherever they see some."""
    parents = [trees.ROOT, *(n.id for n in groups.closed if n.status is NodeStatus.SOLVED)]
    opened = [n.id for n in (*groups.frontier, *groups.waiting)]
    parents += [n.id for n in groups.active] + opened
    shown = f"Insert under: {', '.join(parents[:80])}{' or another one listed above' if len(parents) > 80 else ''}."
    changes = f"{', '.join(opened[:80])}{' or another one listed above' if len(opened) > 80 else ''}"
    return f"{shown} Update or prune: {changes or 'nothing is open'}."
