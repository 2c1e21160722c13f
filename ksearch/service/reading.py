"""A raw reply to a typed one, by the rules of the run's task. Pure: a stored reply may be read again."""

from __future__ import annotations

from ksearch.definition import TaskSpec
from ksearch.protocol import Kind, Plan, Refusal, Request
from ksearch.replies import decode, parse_plan, parse_program
from ksearch.state import State
from ksearch.types import Program

# What a run without a task takes: it is measured elsewhere, by somebody who knows what it is about.
ANY_LANGUAGE = ("cpp", "python", "triton", "cuda")
ENTRY_POINT = "run"


def read_reply(
    state: State, request: Request, raw: bytes, finish: str, task: TaskSpec | None, language: str | None = None
) -> Plan | Program | Refusal:
    """Never raises for what the reply holds: a `Refusal` says why it is no answer."""
    text = decode(raw)
    if request.kind is Kind.PLAN:
        workloads = [w.name for w in task.workloads] if task else None
        return parse_plan(text, state.tree, finish=finish or None, known_workloads=workloads)
    languages = (language,) if language else task.languages if task else ANY_LANGUAGE
    symbol = task.entry_point if task else ENTRY_POINT
    return parse_program(text, languages=languages, entry_point=symbol, finish=finish or None)
