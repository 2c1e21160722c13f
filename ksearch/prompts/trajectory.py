"""Attempts and their measurements in words: what was tried, what came out, and how far it is from the floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from ksearch.prompts.text import cell, fenced, head, ms, one_line, paired, ratio, score, tail, times
from ksearch.prompts.view import Limit, PromptView
from ksearch.state import Attempt, State
from ksearch.types import Evaluation, Ratio, Verdict, WorkloadResult

DISTURBED = 1.5  # times the usual baseline


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
    judged = attempt.judged
    facts += [f for f in [changed(done, judged.versus_best or judged.versus_parent) if judged else ""] if f]
    doubts = [flag for flag in done.flags if not flag.startswith("baseline on ")]  # tables name disturbed minutes
    facts += [f"doubt: {one_line(flag, 120)}" for flag in doubts[:3]]
    return label + ", ".join(facts)


def _judgement(attempt: Attempt) -> list[str]:
    judged = attempt.judged
    if judged is None:
        return []
    facts = [f"{ratio(judged.versus_parent)} over the parent"] if judged.versus_parent else []
    if judged.versus_best:
        facts.append(f"{ratio(judged.versus_best)} over the cycle's best until then")
    if judged.improved:
        behind = judged.versus_parent is not None and judged.versus_parent.high < 1
        first = "the first that passed, slower than the parent" if behind else "the first that passed"
        facts.append("an improvement" if judged.versus_best else first)
    elif judged.new_best:  # compared with two programs, it can be surely better than the one and not the other
        return [*facts, "not surely better than the cycle's best, but than the run's: NEW BEST OF THE RUN"]
    else:
        ahead = judged.versus_best is not None and judged.versus_best.value > 1  # but its interval holds 1
        facts.append("no sure improvement" if ahead else "no improvement")
    return [*facts, "NEW BEST OF THE RUN"] if judged.new_best else facts


def changed(done: Evaluation, versus: Ratio | None) -> str:
    """The workloads that a program surely changed against the program that `versus` compares it with."""
    rival = next((id for id, found in done.against.items() if found == versus), None)
    found = [
        (w.workload, r) for w in done.workloads if rival and (r := w.against.get(rival)) and (r.faster or r.high < 1)
    ]
    told = [f"{cell(name)} {ratio(r)}" for name, r in found]
    return f"changed: {', '.join(told[:8])}{f' and {len(told) - 8} more' if len(told) > 8 else ''}" if told else ""


def table(view: PromptView, done: Evaluation, rivals: Mapping[str, str], limit: int = 60) -> str:
    """Times per workload: in ms, over the baseline, over each rival (program id -> heading), the rates reached, and the
    time as a multiple of the floor. Workloads that did not pass come first, with their reason."""
    shown = sorted(done.workloads, key=lambda w: w.verdict is Verdict.PASSED)[:limit]
    if not any(w.verdict is Verdict.PASSED for w in shown):
        return ""  # the reason stands with the attempt
    used = {id: name for id, name in rivals.items() if any(id in w.against for w in shown)}
    work = _work(view)
    rates = ["GB/s", "GFLOP/s"] if any(work.values()) else []
    heads = ["workload", "ms", "baseline ms", "speedup", *(f"over {name}" for name in used.values()), *rates, "x floor"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for w in shown:
        reached = _reached(w, work.get(w.workload)) if rates else []
        lines.append(_row(_cells(w, list(used), reached, view.limits.get(w.workload))))
    if len(done.workloads) > limit:
        lines.append(f"({len(done.workloads) - limit} more workloads)")
    return "\n".join([*lines, *_disturbed(view.state, done)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _work(view: PromptView) -> dict[str, tuple[float, float] | None]:
    """Compulsory bytes and operations by workload; None where the task states none."""
    found = {w.name: view.task.floor(view.task.names(w.axes)) for w in view.task.workloads}
    return {name: amounts if any(amounts) else None for name, amounts in found.items()}


def _reached(w: WorkloadResult, amounts: tuple[float, float] | None) -> list[str]:
    """GB/s and GFLOP/s of the compulsory work: what a program does beyond that is not counted."""
    if not amounts or not w.latency_ms or w.verdict is not Verdict.PASSED:
        return ["", ""]
    return [f"{amount / w.latency_ms / 1e6:.3g}" if amount else "" for amount in amounts]


def _cells(w: WorkloadResult, rivals: Sequence[str], reached: list[str], limit: Limit | None) -> list[str]:
    if w.verdict is not Verdict.PASSED:
        return [cell(w.workload), f"{w.verdict}: {cell(w.reason, 200)}", *([""] * (3 + len(rivals) + len(reached)))]
    against = [paired(w.against[r]) if r in w.against else "" for r in rivals]
    binds = f" ({limit.binds})" if limit else ""
    floor = f"{times(w.latency_ms / w.floor_ms)}{binds}" if w.latency_ms is not None and w.floor_ms else ""
    return [
        cell(w.workload),
        ms(w.latency_ms) if w.latency_ms is not None else "",
        ms(w.baseline_ms) if w.baseline_ms is not None else "",
        paired(w.speedup) if w.speedup else "",
        *against,
        *reached,
        floor,
    ]


def _disturbed(state: State, done: Evaluation) -> list[str]:
    """Where the baseline took much longer than it usually does, the times in ms say little."""
    usual: dict[str, list[float]] = {}
    for other in state.evaluations.values():
        for w in other.workloads:
            usual.setdefault(w.workload, []).extend([w.baseline_ms] if w.baseline_ms else [])
    told = []
    for w in done.workloads:
        normal = median(usual.get(w.workload) or [0.0])
        if w.baseline_ms and normal and w.baseline_ms > DISTURBED * normal:
            told.append(f"{cell(w.workload)} {w.baseline_ms / normal:.1f}x")
    if not told:
        return []
    return [
        f"\nThe machine was disturbed: the baseline took longer than usual ({', '.join(told)}). The times in ms and "
        "the multiples of the floor are too high; trust what is measured in pairs, above all against other programs."
    ]


def furthest(view: PromptView, done: Evaluation) -> str:
    """Which workload is furthest from its floor, and what sets that floor."""
    factors = {i: w.latency_ms / w.floor_ms for i, w in enumerate(done.workloads) if w.latency_ms and w.floor_ms}
    if not factors:
        return ""
    at = max(factors, key=lambda i: factors[i])
    far = done.workloads[at]
    text = f"Furthest from its floor: {cell(far.workload)}, {times(factors[at])}"
    limit = view.limits.get(far.workload)
    if limit is None or not far.latency_ms or not far.floor_ms:
        return f"{text}."
    amount, unit = (limit.bytes_moved, "GB/s") if limit.binds == "memory" else (limit.operations, "GFLOP/s")
    rates = f"{amount / far.latency_ms / 1e6:.3g} of {amount / far.floor_ms / 1e6:.3g} {unit}"
    return f"{text}: {limit.binds} sets that floor, and {rates} are reached."


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
