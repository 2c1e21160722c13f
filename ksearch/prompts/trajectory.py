"""Attempts and their measurements in words: what was tried, what came out, and how far it is from the floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ksearch.prompts.text import cell, fenced, head, ms, one_line, ratio, score, tail, times
from ksearch.state import Attempt, State
from ksearch.types import Evaluation, Verdict, WorkloadResult


def attempt_line(state: State, number: int, attempt: Attempt, reason_chars: int = 300) -> str:
    """One attempt: verdict, and either the reason or the speedups."""
    label = f"- attempt {number}: "
    if attempt.verdict is None:
        return label + "not measured"
    done = state.evaluations.get(attempt.program_id or "")
    if attempt.verdict is not Verdict.PASSED or done is None or done.speedup is None:
        stage = f" at {cell(done.stage)}" if done and done.stage and attempt.verdict is done.verdict else ""
        reason = one_line(attempt.reason, reason_chars)
        return f"{label}{attempt.verdict}{stage}{': ' if reason else ''}{reason}"
    facts = [f"passed, score {score(done.speedup)} ({ratio(done.speedup)})", *_judgement(attempt)]
    facts += [f"doubt: {one_line(flag, 120)}" for flag in done.flags[:3]]
    return label + ", ".join(facts)


def _judgement(attempt: Attempt) -> list[str]:
    judged = attempt.judged
    if judged is None:
        return []
    facts = [f"{ratio(judged.versus_parent)} over the parent"] if judged.versus_parent else []
    if judged.versus_best:
        facts.append(f"{ratio(judged.versus_best)} over the cycle's best until then")
    facts.append("an improvement" if judged.improved else "no improvement")
    return [*facts, "NEW BEST OF THE RUN"] if judged.new_best else facts


def table(done: Evaluation, rivals: Mapping[str, str], limit: int = 60) -> str:
    """Times per workload: in ms, over the baseline, over each rival (program id -> heading), and as a multiple of the
    floor. Workloads that did not pass come first, with their reason."""
    shown = sorted(done.workloads, key=lambda w: w.verdict is Verdict.PASSED)[:limit]
    if not shown:
        return ""
    used = {id: name for id, name in rivals.items() if any(id in w.against for w in shown)}
    heads = ["workload", "ms", "baseline ms", "speedup", *(f"over {name}" for name in used.values()), "x floor"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    lines += [_row(_cells(w, list(used))) for w in shown]
    if len(done.workloads) > limit:
        lines.append(f"({len(done.workloads) - limit} more workloads)")
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(w: WorkloadResult, rivals: Sequence[str]) -> list[str]:
    if w.verdict is not Verdict.PASSED:
        return [cell(w.workload), f"{w.verdict}: {cell(w.reason, 200)}", *([""] * (3 + len(rivals)))]
    against = [times(w.against[r].value) if r in w.against else "" for r in rivals]
    floor = times(w.latency_ms / w.floor_ms) if w.latency_ms is not None and w.floor_ms else ""
    return [
        cell(w.workload),
        ms(w.latency_ms) if w.latency_ms is not None else "",
        ms(w.baseline_ms) if w.baseline_ms is not None else "",
        times(w.speedup.value) if w.speedup else "",
        *against,
        floor,
    ]


def log_block(done: Evaluation, limit: int) -> str:
    """The useful end of the log: a compiler's first errors, otherwise the last lines."""
    log = done.log.strip()
    if not log or limit < 80:
        return ""
    room = limit - 20
    while room > 40:
        cut = head(log, room) if done.verdict is Verdict.COMPILE_ERROR else tail(log, room)
        if len(block := fenced(cut, "text")) <= limit:
            return block
        room -= max(20, len(block) - limit)
    return ""
