"""Prompts of a run that has a task: gathered from state, log, task and machine, rendered by `ksearch.prompts`."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from functools import cache, lru_cache

from ksearch.errors import UnknownBlob
from ksearch.evaluators.gpu import nvml
from ksearch.hardware import hardware_sheet, read_hardware
from ksearch.prompts import Prompt, PromptView, cpu_facts, gpu_facts, guide, relevant, render_plan, render_write
from ksearch.protocol import Kind, Request
from ksearch.replies import plan_form, program_form
from ksearch.run import Run
from ksearch.service.beginning import Setting, log_of
from ksearch.service.machine import Machine, machine_of
from ksearch.state import State
from ksearch.syntax import parse
from ksearch.tasks import Task
from ksearch.tasks.folder import HARDWARE
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
    task, config = setting.task, setting.config
    language = config.language or task.spec.languages[0]
    plan, brief, machine = request.kind is Kind.PLAN, config.brief_prompts, machine_of(state.context)
    languages = (config.language,) if config.language else tuple(task.spec.languages)
    view = PromptView.gather(
        request,
        state,
        log_of(run),
        task.spec,
        plan_form() if plan else program_form(language, task.spec.entry_point, brief=brief),
        lambda program_id: _source(run, program_id),
        reference=task.reference_source,
        hardware=_sheet(task, machine, _measured_on(state)),
        limits=machine.limits if machine else None,
        guide=_guides(task, languages, brief) if brief or not plan else "",
        language=config.language or "",
    )
    if plan:
        return render_plan(view, config.prompt_tokens, brief=brief)
    return render_write(view, config.prompt_tokens, brief=brief)


def _source(run: Run, program_id: str) -> Program | None:
    try:
        return run.program(program_id)
    except UnknownBlob:
        return None


def _measured_on(state: State) -> str:
    """The device that the newest result names: of a run whose programs are measured elsewhere, all that is known."""
    return next((done.device for done in reversed(tuple(state.evaluations.values())) if done.device), "")


def _sheet(task: Task, machine: Machine | None, seen: str) -> str:
    """What was measured, then what is known: the task's own word where it has one, else public facts."""
    if machine:
        measured, known = machine.sheet(), machine.known()
    elif task.spec.device == "cuda":
        gpu = seen or next((gpu["name"] for gpu in nvml.gpus()), "")
        measured = f"GPU: {gpu}" if gpu else "A GPU of another machine: the first results will name its model."
        known = gpu_facts(gpu) if gpu else ""
    else:
        measured, known = _hardware(task.spec.threads), _known()
    if own := task.guides.get(HARDWARE):
        known = relevant(own.read_text(encoding="utf-8"), _about(task))
    return "\n\n".join(part for part in (measured, known.strip()) if part)


@cache
def _known() -> str:
    here = read_hardware()
    return cpu_facts(here.model, here.simd)


def _guides(task: Task, languages: tuple[str, ...], brief: bool) -> str:
    """Of the usual language; on a GPU of all that a writer may choose from, the usual one first."""
    wanted = languages if task.spec.device == "cuda" and not brief else languages[:1]
    return "\n\n".join(dict.fromkeys(text for language in wanted if (text := _guide(task, language, brief).strip())))


def _guide(task: Task, language: str, brief: bool) -> str:
    """The task's own guide where it has one, else the general one, without sections that the task has no use for."""
    if own := task.guides.get(language):
        return relevant(own.read_text(encoding="utf-8"), _about(task))
    return guide(language, _about(task), task.spec.device, brief=brief)


def _about(task: Task) -> str:
    return f"{task.spec.title}\n{task.spec.description}\n{_computing(task.reference_source)}"


@lru_cache(64)
def _computing(reference: str) -> str:
    """A reference without the functions that only make its inputs."""
    kept = [n for n in parse(reference).body if getattr(n, "name", "") not in ("inputs", "awkward")]
    return "\n".join(map(ast.unparse, kept))


@cache
def _hardware(threads: int) -> str:
    """For a run whose log tells nothing of the machine: this one, in the hope that it is the one that measures."""
    # Without the present clock: it changes from call to call, and with it the part that providers cache.
    return hardware_sheet(replace(read_hardware(), clock_mhz=None), threads=threads)


def as_text(prompt: bytes) -> str:
    """A recorded prompt as one text for people."""
    body = json.loads(prompt)
    return f"{body['system']}\n\n{body['text']}\n"
