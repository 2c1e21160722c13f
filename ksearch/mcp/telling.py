"""What a tool says: facts as one JSON object, then texts to read. And what happened, in lines an agent can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ksearch import events as ev
from ksearch.errors import AgentError, KSearchError
from ksearch.prompts.text import one_line, ratio
from ksearch.types import Evaluation, Insert, Prune, Ratio, Update, WorkloadResult

SHOWN_ID = 12  # digits of a program's id that are shown; any unique beginning is taken
MAX_TEXT = 60_000  # characters of one text in an answer: clients cut longer ones


@dataclass(frozen=True, slots=True)
class Said:
    """The answer of a tool. `facts["next"]` is the call that is most likely wanted now."""

    facts: Mapping[str, Any]
    texts: Sequence[str] = field(default_factory=tuple)


def refuse(what: str, then: str) -> AgentError:
    """An error an agent can act on: what is wrong with its cure, and the tool to call next."""
    return AgentError(f"{what.rstrip('.')}. Next: {then}")


_THEN = {
    "UnknownRun": "list_runs()",
    "TaskError": "list_runs() names the tasks that can be searched here",
    "BadInput": "correct the argument and call again",
    "ConfigError": "correct the argument and call again",
    "InvalidReply": "next_request()",
    "InvalidCommand": "status()",
    "InvalidEdit": "tree(), then submit_plan() again",
    "EvaluatorError": "tell your user: this machine cannot measure the task until that is cured",
    "Conflict": "call again",
}


def explain(error: KSearchError) -> str:
    """Any of our errors as text for an agent."""
    if isinstance(error, AgentError):
        return str(error)
    then = next((_THEN[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _THEN), "tell your user")
    return f"{str(error).rstrip('.')}. Next: {then}"


def short(program_id: str | None) -> str | None:
    return program_id[:SHOWN_ID] if program_id else None


def clipped(text: str, uri: str) -> str:
    """A text within what clients show, and where to read on."""
    if len(text) <= MAX_TEXT:
        return text
    rest = len(text) - MAX_TEXT
    return f'{text[:MAX_TEXT]}\n[{rest:,} more characters: read(uri="{uri}", offset={MAX_TEXT})]'


# --- evaluations -----------------------------------------------------------------------------------------------------


def interval(value: Ratio | None) -> dict[str, float] | None:
    return None if value is None else {name: round(number, 4) for name, number in asdict(value).items()}


def verdict_facts(done: Evaluation) -> dict[str, Any]:
    """The result in short. Speedups are over the baseline, `against` over other programs: above 1 is faster."""
    facts: dict[str, Any] = {"program": short(done.program_id), "verdict": str(done.verdict), "stage": done.stage}
    facts |= {"reason": done.reason} if done.reason else {}
    if done.speedup:
        facts |= {"speedup": interval(done.speedup), "latency_ms": done.latency_ms, "confirmed": done.confirmed}
    if done.against:
        facts["against"] = {id[:SHOWN_ID]: interval(value) for id, value in done.against.items()}
    return facts | ({"doubts": list(done.flags)} if done.flags else {})


def workload_facts(found: WorkloadResult) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": found.workload, "verdict": str(found.verdict)}
    facts |= {"reason": found.reason} if found.reason else {}
    for name in ("latency_ms", "baseline_ms", "floor_ms", "max_abs_error", "max_rel_error"):
        value = getattr(found, name)
        facts |= {name: float(f"{value:.4g}")} if value is not None else {}
    return facts | ({"speedup": interval(found.speedup)} if found.speedup else {})


# --- what happened ---------------------------------------------------------------------------------------------------


def happened(events: Iterable[ev.Event]) -> list[str]:
    """What the engine made of an answer, a line each."""
    return [line for event in events if (line := _line(event))]


def _line(event: ev.Event) -> str:
    match event:
        case ev.Planned(edits=edits, dropped=dropped):
            return "plan accepted: " + ("; ".join([*map(_edit, edits), *dropped]) or "nothing to change")
        case ev.PlanRefused(reason=reason):
            return f"plan refused: {reason}"
        case ev.PlanAbandoned(reason=reason):
            return f"no further plan is asked for: {reason}"
        case ev.Written(program_id=program):
            return f"program {program[:SHOWN_ID]} waits to be measured"
        case ev.WriteFailed(verdict=verdict, reason=reason):
            return f"no program: {verdict}: {reason}"
        case ev.Submitted(node_id=node, program_id=program):
            return f"program {program[:SHOWN_ID]} entered at {node} and waits to be measured"
        case ev.Judged(node_id=node, attempt=attempt):
            best = "new best of the run" if event.new_best else "improved" if event.improved else "no improvement"
            over = f", {ratio(event.versus_best)} over the best of this action before" if event.versus_best else ""
            return f"{node} attempt {attempt + 1}: {best}{over}"
    return _course(event)


def _course(event: ev.Event) -> str:
    match event:
        case ev.CycleClosed(node_id=node, reason=reason, program_id=program, speedup=speedup):
            if program and speedup:
                return f"{node} solved by program {program[:SHOWN_ID]}, {ratio(speedup)} over the baseline ({reason})"
            return f"{node} {'open again' if event.unfinished else 'rejected'} ({reason})"
        case ev.WorkLost(request_id=id, reason=reason):
            return f"{id} was lost, and is asked again: {reason}"
        case ev.Ignored(request_id=id, reason=reason):
            return f"{id} was ignored: {reason}"
        case ev.Commanded(command=ev.Pause(reason=reason), author=author):
            return f"paused by {author}: {reason}"
        case ev.Commanded(command=ev.Resume(), author=author):
            return f"resumed by {author}"
        case ev.Paused(reason=reason):
            return f"the run is paused: {reason}"
        case ev.Ended(reason=reason):
            return f"the run has ended: {reason}"
    return ""


def _edit(edit: Insert | Update | Prune) -> str:
    match edit:
        case Insert(parent_id=parent, action=action, id=id):
            return f'{id} under {parent} "{one_line(action.title, 100)}"'
        case Update(node_id=node):
            return f"{node} updated"
        case Prune(node_id=node):
            return f"{node} pruned"
