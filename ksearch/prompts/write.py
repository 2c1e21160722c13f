"""The writer's prompt: the task, one program to start from, one action, and what became of the tries so far."""

from __future__ import annotations

from ksearch.prompts import common, taskparts
from ksearch.prompts.fit import Prompt, Section, fit
from ksearch.prompts.profiles import profile_lines
from ksearch.prompts.template import Template, load
from ksearch.prompts.text import cell, fenced, one_line, quoted, ratio, times
from ksearch.prompts.trajectory import attempt_line, changed, furthest, log_block, table
from ksearch.prompts.view import PromptView
from ksearch.state import Attempt
from ksearch.types import Program, Verdict

DEFAULT_MAX_TOKENS = 24_000
TIME_FAULTS = (Verdict.FORGED, Verdict.TOO_FAST)


def render_write(view: PromptView, max_tokens: int = DEFAULT_MAX_TOKENS, *, brief: bool = False) -> Prompt:
    """The prompt for a program.

    Args:
        view: the request, the state and the texts around it.
        max_tokens: limit of system and user message together, estimated at 3.5 characters a token.
        brief: the short form, for small local models.

    Raises:
        PromptTooLong: what must be there (rules, task, base program, action, reply form) does not fit.
    """
    if brief:
        return _render_brief(view, max_tokens)
    template = load("write")
    sections = [
        _rules(template, view),
        common.task_section(template, view),
        common.fixed(template, "abi", body=taskparts.abis(view.task, view.languages), stable=True),
        common.reference_section(template, view),
        common.hardware_section(template, view),
        _guide(template, view),
        common.fixed(template, "form", body=view.reply_form.strip(), stable=True),
        _base(template, view),
        _attempts(template, view),
        _last(template, view),
        _said(template, view),
        _action(template, view),
        _now(template, view),
    ]
    return fit(template.fill("system"), sections, max_tokens, "writer's prompt")


def _rules(template: Template, view: PromptView) -> Section:
    task = view.task
    return common.fixed(
        template,
        "rules",
        stable=True,
        mutable=taskparts.mutable(task),
        threads=taskparts.threads(task),
        forbidden=taskparts.forbidden(task.forbid),
        precision=taskparts.precision(task),
    )


def _guide(template: Template, view: PromptView) -> Section:
    text = view.guide.strip()
    grow = common.lines_within(text, str) if text else None
    return common.section(template, "guide", grow=grow, share=0.6, priority=3, stable=True)


def base_program(view: PromptView) -> tuple[Program | None, str]:
    """The program to start from, and what it is."""
    id = view.request.program_id
    if id is None:
        return view.task.baseline, "the plain baseline, score 100"
    cycle = view.state.cycles.get(view.request.node_id)
    role = "best of this action so far" if cycle and cycle.best_id == id else "the parent's program"
    return view.source_of(id), f"{role}, {common.standing(view.evaluation(id))}"


def _base(template: Template, view: PromptView) -> Section:
    """In full, always, with its times per workload."""
    program, what = base_program(view)
    code = common.sources(program) if program else "(its source is not at hand)"
    done = view.evaluation(view.request.program_id)

    def grow(limit: int) -> str:
        numbers = table(view, done, common.rivals(view, done.program_id), limit=40) if done else ""
        pieces = [code, *(p for p in (numbers, profile_lines(done)) if p)]
        while len(pieces) > 1 and len("\n\n".join(pieces)) > limit:
            pieces.pop()
        return "\n\n".join(pieces)

    return common.section(template, "base", least=code, grow=grow, priority=1, what=what)


def _action(template: Template, view: PromptView) -> Section:
    action = view.node.action
    lines = [quoted(action.title, 300)]
    if action.workloads:
        lines.append(f"Aimed at the workloads {', '.join(cell(w) for w in action.workloads)}; keep the others as fast.")
    if action.enabling:
        lines.append("An enabling step: it may be slower at first; later actions build on it. Correctness comes first.")
    if action.predicted_speedup is not None:
        lines.append(f"The planner expects {times(action.predicted_speedup)} over the parent's program.")
    for label, text in (("Why", action.rationale), ("Notes", view.node.notes)):
        if text.strip():
            lines.append(f"{label}:\n{fenced(text.strip()[:4000], 'text')}")
    return common.section(template, "action", least="\n".join(lines))


def _done(view: PromptView) -> list[tuple[int, Attempt]]:
    """Attempts that are over, with their numbers. The one being asked for now is not."""
    return [(i, a) for i, a in enumerate(view.attempts, 1) if a.verdict is not None]


def _attempts(template: Template, view: PromptView) -> Section:
    """The last ones in a line each; then, newest first, times and logs."""
    done = _done(view)
    if not done:
        return common.section(template, "attempts")
    hidden = f"(attempts 1 to {done[-8][0] - 1} are not shown)" if len(done) > 8 else ""
    lines = [hidden, *(attempt_line(view.state, i, a, 400) for i, a in done[-8:])]
    least = "\n".join(attempt_line(view.state, i, a, 200) for i, a in done[-3:])

    def grow(limit: int) -> str:
        text = "\n".join(line for line in lines if line)
        if len(text) > limit:
            return least
        for i, attempt in done[:-4:-1]:
            extra = _details(view, i, attempt)
            if extra and len(text) + len(extra) + 2 <= limit:
                text += f"\n\n{extra}"
        return text

    return common.section(template, "attempts", least=least, grow=grow, share=0.5, priority=0)


def _details(view: PromptView, number: int, attempt: Attempt) -> str:
    done = view.evaluation(attempt.program_id)
    if done is None or attempt.verdict is not done.verdict:
        return ""
    is_base = attempt.program_id == view.request.program_id  # its table stands with the base program
    numbers = "" if is_base else table(view, done, common.rivals(view, attempt.program_id), limit=24)
    log = log_block(done, 2000) if done.verdict is not Verdict.PASSED else ""
    body = "\n\n".join(p for p in (numbers, log) if p)
    return f"Attempt {number}, {attempt.verdict}:\n\n{body}" if body else ""


def _last(template: Template, view: PromptView) -> Section:
    """The source of the last attempt, unless it is the base: a small fault is easier to mend than to avoid."""
    for number, attempt in reversed(_done(view)):
        program = view.source_of(attempt.program_id) if attempt.program_id else None
        if program is None or attempt.program_id == view.request.program_id:
            return common.section(template, "last")
        what = f"attempt {number}, {attempt.verdict}"

        def grow(limit: int, shown: Program = program) -> str:
            return common.sources(shown, limit)

        return common.section(template, "last", grow=grow, share=0.4, priority=2, what=what)
    return common.section(template, "last")


def _said(template: Template, view: PromptView) -> Section:
    here = [r for r in view.remarks if r.node_id == view.node.id][-4:]
    lines = [f"- {one_line(r.author, 40)}: {quoted(r.text, 400)}" for r in here]
    return common.section(template, "remarks", grow=lambda limit: _all_or_none(lines, limit), share=0.1, priority=1)


def _all_or_none(lines: list[str], limit: int) -> str:
    text = "\n".join(lines)
    return text if len(text) <= limit else ""


def _now(template: Template, view: PromptView) -> Section:
    body = _goal(view)
    for reason in view.refusals[-2:]:
        body += f"\nAn earlier answer was not taken: {one_line(reason, 400)}"
    return common.fixed(template, "now", body=body, language=_language(view))


def _language(view: PromptView) -> str:
    first, *others = view.languages
    if not others:
        return f"{taskparts.language_name(first)} only"
    tags = " or ".join(f"{taskparts.language_name(name)} (a block marked {name})" for name in others)
    return f"in {taskparts.language_name(first)} (a block marked {first}); where the action asks for it, in {tags}"


def _goal(view: PromptView) -> str:
    done = _done(view)
    last = done[-1][1] if done else None
    judged = last.judged if last else None
    if last is None:
        return "First attempt at this action."
    if last.verdict is Verdict.DUPLICATE:
        return "Your last program had been measured before: write a different one."
    if last.verdict in TIME_FAULTS:
        return (
            f"The last attempt ended in {last.verdict}: its times do not hold together. All work belongs inside the "
            "call; where it is there, the measurement may have been disturbed, and the idea is not disproved."
        )
    if last.verdict is not Verdict.PASSED:
        return f"The last attempt ended in {last.verdict}: mend the cause, or carry the action out in another way."
    if judged and not judged.improved:
        parts = f" ({ratio(judged.versus_best)} over the best of this action)" if judged.versus_best else ""
        return f"The last attempt was right but no improvement{parts}: carry the action out better."
    if judged and not judged.beats_parent and not view.node.action.enabling:
        parts = f" ({ratio(judged.versus_parent)})" if judged.versus_parent else ""
        found = view.evaluation(last.program_id)
        by_workload = changed(found, judged.versus_parent) if found else ""
        parts += f"; {by_workload} by workload" if by_workload else ""
        return f"The last attempt is right, but not surely faster than the parent's on the whole{parts}: make it pay."
    measured = view.evaluation(last.program_id)
    far = furthest(view, measured) if measured else ""
    word = "improved" if judged and (judged.versus_best or judged.beats_parent) else "passed"
    return f"The last attempt {word}. {far or 'Find what takes its time now.'}".rstrip()


# --- the short form ------------------------------------------------------------------------------------------------


def _render_brief(view: PromptView, max_tokens: int) -> Prompt:
    template, task, language = load("write_brief"), view.task, view.written_in
    title = one_line(task.title or task.name)
    action = view.node.action
    program, what = base_program(view)
    intent = quoted(action.title, 200)
    if action.rationale.strip():
        intent += f"\nWhy: {quoted(action.rationale, 400)}"
    sections = [
        common.fixed(template, "task", stable=True, title=title, definition=taskparts.short_definition(task, language)),
        common.fixed(
            template,
            "rules",
            stable=True,
            mutable=taskparts.mutable(task),
            threads=taskparts.threads(task),
            forbidden=taskparts.forbidden(task.forbid),
        ),
        _guide(template, view),
        common.fixed(template, "form", stable=True, body=view.reply_form.strip()),
        common.section(template, "base", least=common.sources(program) if program else "", what=what),
        _brief_last(template, view),
        common.section(template, "action", least=intent),
        common.fixed(template, "now", language=taskparts.language_name(language), why=_brief_goal(view)),
    ]
    system = template.fill("system", language=taskparts.language_name(language))
    return fit(system, sections, max_tokens, "writer's brief prompt")


def _brief_goal(view: PromptView) -> str:
    """A word on a last attempt that was right and still no gain; of a fault its section tells."""
    right = [a.judged for _, a in _done(view)[-1:] if a.verdict is Verdict.PASSED and a.judged]
    return "Your last try was right, but not faster." if right and not right[0].improved else ""


def _brief_last(template: Template, view: PromptView) -> Section:
    failed = [a for _, a in _done(view)[-1:] if a.verdict is not Verdict.PASSED]
    if not failed:
        return common.section(template, "last")
    attempt = failed[0]
    done = view.evaluation(attempt.program_id)
    log = log_block(done, 700) if done and attempt.verdict is done.verdict else ""
    reason = quoted(attempt.reason, 300) if attempt.reason else "no reason given"

    def grow(limit: int) -> str:
        whole = f"{reason}\n\n{log}" if log else reason
        return whole if len(whole) <= limit else reason

    return common.section(template, "last", least=reason, grow=grow, what=str(attempt.verdict))
