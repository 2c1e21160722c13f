"""Replies: a model's text to a typed plan, program or refusal. Pure functions; never a silent guess."""

from __future__ import annotations

from ksearch.replies.forms import canonical_source, plan_form, program_form, render_program
from ksearch.replies.plan import parse_plan, plan_schema
from ksearch.replies.program import parse_program
from ksearch.replies.text import decode

__all__ = [
    "canonical_source",
    "decode",
    "parse_plan",
    "parse_program",
    "plan_form",
    "plan_schema",
    "program_form",
    "render_program",
]
