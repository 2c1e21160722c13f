"""The shipped fakes keep the contracts that they are shipped with, and the contracts catch who does not."""

from __future__ import annotations

import itertools

import pytest

from ksearch.drivers import Answer, Job, Measured
from ksearch.protocol import Kind, Request
from ksearch.state import State
from ksearch.testing.contracts import check_evaluator, check_mind
from ksearch.testing.fakes import FakeEvaluator, FakePlanner, FakeWriter, RecordedEvaluator
from ksearch.types import Evaluation, Program, Verdict


def no_program(program_id: str) -> Program:
    raise AssertionError(f"{program_id} was not expected to be read")


def job(kind: Kind) -> Job:
    return Job(Request("r0", kind, "root", why="start"), State(), no_program)


def programs() -> tuple[Program, Program, Program]:
    fake = FakeEvaluator()
    texts = (Program({"k.cpp": f"// {i}"}, "k.cpp::run", "cpp") for i in itertools.count())
    sorted_: dict[bool, list[Program]] = {True: [], False: []}
    while len(sorted_[True]) < 2 or not sorted_[False]:
        program = next(texts)
        measured = fake.evaluate(program, ())
        assert isinstance(measured, Measured)
        sorted_[measured.evaluation.verdict is Verdict.PASSED].append(program)
    return sorted_[True][0], sorted_[False][0], sorted_[True][1]


def test_the_fake_minds_keep_the_contract() -> None:
    check_mind(FakePlanner(), job(Kind.PLAN))
    check_mind(FakeWriter(), job(Kind.WRITE))


def test_the_fake_and_the_recorded_evaluator_keep_the_contract() -> None:
    good, bad, rival = programs()
    measured = check_evaluator(FakeEvaluator(), good, bad, [rival])
    failed = FakeEvaluator().evaluate(bad, ())
    assert isinstance(failed, Measured)
    record = {good.id: measured.evaluation, bad.id: failed.evaluation}
    check_evaluator(RecordedEvaluator(record), good, bad, [rival])


class Forgetful(FakeWriter):
    count = 0

    def prompt(self, job: Job) -> bytes:
        self.count += 1
        return str(self.count).encode()


class Fragile(FakePlanner):
    def read(self, job: Job, raw: bytes, finish: str):  # type: ignore[no-untyped-def]
        return super().read(job, raw.strip(b"\xff") or 1 / 0, finish)


class Chatty(FakeWriter):
    def answer(self, job: Job, prompt: bytes) -> Answer:
        return Answer("text")  # type: ignore[arg-type]


def test_the_contract_catches_an_impure_prompt_a_fragile_reader_and_an_unread_text() -> None:
    with pytest.raises(AssertionError, match="must be pure"):
        check_mind(Forgetful(), job(Kind.WRITE))
    with pytest.raises(ZeroDivisionError):
        check_mind(Fragile(), job(Kind.PLAN))
    with pytest.raises(AssertionError, match="as bytes"):
        check_mind(Chatty(), job(Kind.WRITE))


class Lax(FakeEvaluator):
    def evaluate(self, program, against):  # type: ignore[no-untyped-def]
        return super().evaluate(program, ())


class Silent(FakeEvaluator):
    def evaluate(self, program, against):  # type: ignore[no-untyped-def]
        return Measured(Evaluation(program.id, Verdict.COMPILE_ERROR))


def test_the_contract_catches_missing_pairs_and_a_verdict_without_a_reason() -> None:
    good, bad, rival = programs()
    with pytest.raises(AssertionError, match="paired ratio for each"):
        check_evaluator(Lax(), good, bad, [rival])
    with pytest.raises(AssertionError, match="reason that a writer can act on"):
        check_evaluator(Silent(), good, bad)
