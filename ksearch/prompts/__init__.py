"""Prompts: from a request and the state of a run to the text that a planner or writer is sent.

Pure functions. Templates are Markdown files in `templates/`, language guides in `guides/`.
"""

from __future__ import annotations

from ksearch.prompts.fit import Part, Prompt
from ksearch.prompts.guides import guide, relevant
from ksearch.prompts.machines import cpu_facts, gpu_facts
from ksearch.prompts.plan import render_plan
from ksearch.prompts.view import Limit, PromptView
from ksearch.prompts.write import render_write

__all__ = [
    "Limit",
    "Part",
    "Prompt",
    "PromptView",
    "cpu_facts",
    "gpu_facts",
    "guide",
    "relevant",
    "render_plan",
    "render_write",
]
