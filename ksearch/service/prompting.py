"""Prompts of a run that has a task: gathered from state, log, task and machine, rendered by `ksearch.prompts`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

from ksearch.errors import UnknownBlob
from ksearch.hardware import hardware_sheet, read_hardware
from ksearch.prompts import Prompt, PromptView, guide, render_plan, render_write
from ksearch.protocol import Kind, Request
from ksearch.replies import plan_form, program_form
from ksearch.run import Run
from ksearch.service.beginning import Setting, log_of
from ksearch.state import State
from ksearch.tasks import Task
from ksearch.types import Program


def prompt_of(run: Run, state: State, request: Request, setting: Setting) -> bytes | None:
    """The prompt to record with a request. None: nobody is prompted (a measurement, a run without a task), or the
    reply is stored already.

    Raises:
        PromptTooLong: what must be in it is too much.
    """
    pending = state.pending.get(request.id)
    if pending and pending.received:
        return None
    prompt = render(run, state, request, setting)
    return prompt.canonical if prompt else None


def render(run: Run, state: State, request: Request, setting: Setting) -> Prompt | None:
    if setting.task is None or request.kind is Kind.EVALUATE:
        return None
    task, language = setting.task, setting.config.language or setting.task.spec.languages[0]
    plan = request.kind is Kind.PLAN
    view = PromptView.gather(
        request,
        state,
        log_of(run),
        task.spec,
        plan_form() if plan else program_form(language, task.spec.entry_point),
        lambda program_id: _source(run, program_id),
        reference=task.reference_source,
        hardware=_hardware(task.spec.threads),
        guide="" if plan else _guide(task, language),
        language=language,
    )
    return render_plan(view) if plan else render_write(view)


def _source(run: Run, program_id: str) -> Program | None:
    try:
        return run.program(program_id)
    except UnknownBlob:
        return None


def _guide(task: Task, language: str) -> str:
    """The task's own guide where it has one, else the general one."""
    own = task.guides.get(language)
    if own and own.is_relative_to(task.folder):
        return own.read_text(encoding="utf-8")
    return guide(language)


@cache
def _hardware(threads: int) -> str:
    # Without the present clock: it changes from call to call, and with it the part that providers cache.
    return hardware_sheet(replace(read_hardware(), clock_mhz=None), threads=threads)


def as_text(prompt: bytes) -> str:
    """A recorded prompt as one text for people."""
    body = json.loads(prompt)
    return f"{body['system']}\n\n{body['text']}\n"
