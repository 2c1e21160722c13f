"""A planner or writer that is a model: its prompt rendered, its reply stored as text and read by the parsers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ksearch.drivers import Answer, Job
from ksearch.models import Answer as Reply
from ksearch.models import Call, Model
from ksearch.models.base import NOT_BELIEVED
from ksearch.protocol import Kind, Plan, Refusal, Usage
from ksearch.replies import plan_schema
from ksearch.run import Run
from ksearch.service.beginning import Setting
from ksearch.service.prompting import render
from ksearch.service.reading import read_reply
from ksearch.types import Program

MAX_SENT = 2000  # characters of the parameters that are kept
ROLES = {Kind.PLAN: "planner", Kind.WRITE: "writer"}


@dataclass(frozen=True)
class ModelMind:
    """A `Mind` for one run."""

    model: Model
    run: Run
    setting: Setting

    def prompt(self, job: Job) -> bytes:
        prompt = render(self.run, job.state, job.request, self.setting)
        assert prompt is not None, "a model is asked only about a run with a task"
        return prompt.canonical

    def answer(self, job: Job, prompt: bytes) -> Answer:
        call = self._call(job, prompt)
        reply = self.model.complete(call)
        raw = reply.text.encode("utf-8", "surrogateescape" if _stray_bytes(reply.text) else "surrogatepass")
        usage = Usage(reply.tokens_in, reply.tokens_out, reply.tokens_cached)
        sent = json.dumps(reply.sent, ensure_ascii=False)[:MAX_SENT] if reply.sent else ""
        known = usage if usage != Usage() else None
        return Answer(raw, reply.cost(call), reply.model, reply.finish or "", known, sent, _notes(reply))

    def _call(self, job: Job, prompt: bytes) -> Call:
        body = json.loads(prompt)
        system, text = body["system"], body["text"]
        rendered = render(self.run, job.state, job.request, self.setting)
        # The part that providers can cache: the same words in each prompt of this kind.
        stable = rendered.stable_text if rendered and text.startswith(rendered.stable_text) else ""
        pending = job.state.pending.get(job.request.id)
        return Call(
            ROLES[job.request.kind],
            text[len(stable) :],
            stable,
            system,
            job.request.id,
            len(pending.refusals) if pending else 0,
            self.setting.config.reply_tokens,
            json_schema=plan_schema() if job.request.kind is Kind.PLAN else None,
            timeout_s=self.setting.config.reply_seconds,
        )

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        return read_reply(job.state, job.request, raw, finish, self.setting.spec, self.setting.config.language)


@dataclass(frozen=True)
class Writers:
    """Several writers as one `Mind`: each request names its own."""

    minds: Mapping[str, ModelMind]

    def prompt(self, job: Job) -> bytes:
        return self.minds[job.request.writer].prompt(job)

    def answer(self, job: Job, prompt: bytes) -> Answer:
        return self.minds[job.request.writer].answer(job, prompt)

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        return self.minds[job.request.writer].read(job, raw, finish)


def _notes(reply: Reply) -> tuple[str, ...]:
    """What is odd about a reply, for the log: what was asked and not done, and which numbers are estimates."""
    counted = None not in (reply.tokens_in, reply.tokens_out)
    if counted or any(note.startswith(NOT_BELIEVED) for note in reply.notes):
        return reply.notes
    return (*reply.notes, "tokens are not reported, and so estimated from the texts")


def _stray_bytes(text: str) -> bool:
    """Whether lone surrogates in it stand for bytes that were no UTF-8."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
