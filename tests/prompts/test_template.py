from __future__ import annotations

import pytest

from ksearch.errors import PromptError
from ksearch.prompts import guide, relevant
from ksearch.prompts.template import load, parse

SIMPLE = parse("t.md", "<!-- section: a -->\nHello {{name}}.\n\n<!-- section: b -->\nBye.\n")


def test_a_value_is_put_in_once_and_never_read_again() -> None:
    assert SIMPLE.fill("a", name="{{name}} {name} $name") == "Hello {{name}} {name} $name."


@pytest.mark.parametrize("values", [{}, {"other": 1}, {"name": 1, "other": 2}])
def test_a_missing_or_unused_value_is_an_error_that_names_it(values: dict[str, int]) -> None:
    with pytest.raises(PromptError, match="section 'a'.*(name|other)"):
        SIMPLE.fill("a", **values)


def test_an_unknown_section_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(PromptError, match="no section 'c': it has a, b"):
        SIMPLE.fill("c")


@pytest.mark.parametrize("text", ["stray\n<!-- section: a -->\n", "<!-- section: a -->\n<!-- section: a -->\n"])
def test_a_malformed_template_is_refused(text: str) -> None:
    with pytest.raises(PromptError, match="two sections of one name"):
        parse("t.md", text)


@pytest.mark.parametrize("name", ["plan", "write", "write_brief"])
def test_the_templates_of_the_package_can_be_read(name: str) -> None:
    assert "system" in load(name).sections
    assert "now" in load(name).sections


def test_there_is_a_guide_for_each_cpu_language_and_nothing_for_others() -> None:
    assert "vector_size" in guide("cpp")
    assert "np.exp" in guide("python")
    assert guide("cobol") == ""


def test_a_guides_passage_is_for_tasks_that_mention_its_words() -> None:
    text = "# G\n\nA.\n\n<!-- if: exp, tanh -->\nUse a polynomial.\n<!-- end -->\n\nB.\n"
    assert relevant(text, "y = np.exp(x)") == "# G\n\nA.\n\nUse a polynomial.\n\nB.\n"
    assert relevant(text, "what is expected") == "# G\n\nA.\n\nB.\n"
    assert relevant(text, None) == relevant(text, "Tanh of x")


def test_the_exponential_is_explained_only_where_there_is_one() -> None:
    assert "exp_nonpositive" in guide("cpp", "softmax: exp(x - m)")
    assert "exp_nonpositive" not in guide("cpp", "C = A B, as expected")
    assert "<!--" not in guide("cpp") + guide("python")
