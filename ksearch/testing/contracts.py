"""What every planner, writer and evaluator must hold to. Plugin authors call these from their own tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ksearch.drivers import Answer, Evaluator, Job, Measured, Mind
from ksearch.protocol import Kind, Lost, Plan, Refusal
from ksearch.types import Program, Verdict


def check_mind(mind: Mind, job: Job) -> Plan | Program | Refusal:
    """One request through a planner or writer. Returns the reply, for checks of your own.

    Raises:
        AssertionError: the contract is broken; the message says where.
    """
    prompt = mind.prompt(job)
    assert isinstance(prompt, bytes), "prompt() must return the bytes that are sent"
    assert prompt == mind.prompt(job), "prompt() must be pure: the same job gave two prompts"
    answer = mind.answer(job, prompt)
    assert isinstance(answer, Answer), "answer() must return an Answer"
    assert isinstance(answer.raw, bytes), "answer() must return the reply as bytes, unread"
    reply = mind.read(job, answer.raw, answer.finish)
    assert reply == mind.read(job, answer.raw, answer.finish), "read() must be pure: a stored reply is read again"
    wanted = Plan if job.request.kind is Kind.PLAN else Program
    assert isinstance(reply, wanted | Refusal), f"a {job.request.kind} cannot be answered with {type(reply).__name__}"
    for junk in (b"", b"\xff\xfe", b"I cannot help with that.", b"{" * 10_000, answer.raw[: len(answer.raw) // 2]):
        read = mind.read(job, junk, "length")
        assert isinstance(read, Plan | Program | Refusal), f"read() must take anything, {junk[:20]!r} gave {read!r}"
    return reply


def check_evaluator(evaluator: Evaluator, good: Program, bad: Program, against: Sequence[Program] = ()) -> Measured:
    """A good and a bad program through an evaluator. Returns the good one's measurement.

    Raises:
        AssertionError: the contract is broken; the message says where.
    """
    first = evaluator.evaluate(bad, against)
    assert isinstance(first, Measured), f"a bad program is a verdict, never lost: {first!r}"
    assert first.evaluation.program_id == bad.id, "the evaluation names another program"
    assert first.evaluation.verdict is not Verdict.PASSED, "the bad program passed"
    assert first.evaluation.reason, "a verdict needs a reason that a writer can act on"
    second = evaluator.evaluate(good, against)
    assert not isinstance(second, Lost), f"the good program was lost after the bad one: {second}"
    assert second.evaluation.verdict is Verdict.PASSED, f"the good program did not pass: {second.evaluation}"
    missing = {p.id for p in against} - set(second.evaluation.against)
    assert not missing, f"timed beside others, the evaluation must hold a paired ratio for each; missing {missing}"
    if second.record is not None:
        named = hashlib.sha256(second.record).hexdigest()
        assert second.evaluation.record == named, "evaluation.record must be the SHA-256 of the record"
    return second
