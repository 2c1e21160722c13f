"""Markdown templates: one file per prompt, cut into named sections, with `{{name}}` for what is filled in.

A placeholder that is not given, and a value that no placeholder takes, are errors: a renamed one cannot vanish.
Values are put in once and never read again, so that what looks like a placeholder in a log stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ksearch.errors import PromptError

_SECTION = re.compile(r"^<!-- section: ([a-z_]+) -->\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    sections: Mapping[str, str]

    def fill(self, section: str, **values: object) -> str:
        """One section with its values.

        Raises:
            PromptError: no such section, or placeholders and values do not match.
        """
        if section not in self.sections:
            raise PromptError(f"template {self.name} has no section {section!r}: it has {', '.join(self.sections)}")
        text = self.sections[section]
        wanted = set(_PLACEHOLDER.findall(text))
        if wrong := wanted ^ set(values):
            raise PromptError(
                f"template {self.name}, section {section!r}: not filled or not used: {', '.join(sorted(wrong))}"
            )
        return _PLACEHOLDER.sub(lambda m: str(values[m.group(1)]), text)


def parse(name: str, text: str) -> Template:
    """Cut a template's text into its sections.

    Raises:
        PromptError: text before the first section, or two sections of one name.
    """
    pieces = _SECTION.split(text)
    names, bodies = pieces[1::2], pieces[2::2]
    if pieces[0].strip() or len(set(names)) != len(names):
        raise PromptError(f"template {name}: text before the first section, or two sections of one name")
    return Template(name, {n: body.strip("\n") for n, body in zip(names, bodies, strict=True)})


@cache
def load(name: str) -> Template:
    """A template of this package: "plan", "write", or one of them with "_brief" behind."""
    text = resources.files("ksearch.prompts").joinpath("templates", f"{name}.md").read_text("utf-8")
    return parse(f"{name}.md", text)
