"""What a model is told about the form of its reply is what the parsers take."""

from __future__ import annotations

import pytest

from ksearch.protocol import Plan
from ksearch.replies import parse_plan, parse_program, plan_form, program_form
from ksearch.replies.forms import PLAN_EXAMPLE, program_example
from ksearch.replies.languages import LANGUAGES
from ksearch.replies.plan import InsertReply, PruneReply, UpdateReply
from ksearch.types import Insert, Program, Prune, Update

IDS = ["root", "ID_OF_AN_OPEN_NODE", "ID_OF_ANOTHER"]  # no engine gives such ids: a model that copies them is told so


def test_the_plan_example_is_a_plan_with_all_three_edits() -> None:
    plan = parse_plan(PLAN_EXAMPLE, IDS)
    assert isinstance(plan, Plan), plan
    assert {type(edit) for edit in plan.edits} == {Insert, Update, Prune}
    assert PLAN_EXAMPLE in plan_form()


def test_a_model_that_echoes_the_form_has_given_the_example() -> None:
    assert parse_plan(plan_form(), IDS) == parse_plan(PLAN_EXAMPLE, IDS)


def test_every_key_of_an_edit_is_named_in_the_form() -> None:
    for model in (InsertReply, UpdateReply, PruneReply):
        for key in model.model_fields:
            assert f'"{key}"' in plan_form()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_program_example_is_a_program(language: str) -> None:
    form = program_form(language, "run")
    tag = LANGUAGES[language].tag
    example = f"```{tag}\n{program_example(language, 'run')}```\n"
    assert example in form
    program = parse_program(example, languages=[language], entry_point="run")
    assert isinstance(program, Program), program
    assert program.entry_point == f"{LANGUAGES[language].file}::run"


def test_the_line_that_names_a_file_is_as_the_parser_wants_it() -> None:
    form = program_form("cpp", "gemm.cpp::run")
    line = next(line for line in form.splitlines() if line.startswith("FILE: "))
    reply = f"{line}\n```cpp\n{program_example('cpp', 'run')}```\n"
    program = parse_program(reply, languages=["cpp"], entry_point="run")
    assert isinstance(program, Program), program
    assert program.entry_point == "gemm.cpp::run"


def test_the_forms_are_short() -> None:
    assert len(plan_form()) < 2_400
    assert len(program_form("cpp", "run")) < 900
