from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.errors import PromptTooLong
from ksearch.prompts import PromptView, render_plan
from ksearch.prompts.fit import Section, fit
from ksearch.protocol import Kind
from ksearch.types import Action
from tests.prompts.scripted import Run, first_cycle


def filler(char: str) -> Section:
    return Section(char, char, lambda limit: char * limit, share=0.5)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), st.integers(20, 400))
def test_the_limit_holds_and_is_used(names: list[str], limit: int) -> None:
    prompt = fit("sys", [filler(n) for n in names], limit, "prompt")
    assert limit - 2 <= prompt.tokens <= limit
    assert [p.name for p in prompt.parts] == names


def test_each_gets_its_share_before_the_first_takes_the_rest() -> None:
    first = Section("a", grow=lambda limit: "a" * limit, share=0.5, priority=0)
    second = Section("b", grow=lambda limit: "b" * min(limit, 100), share=0.5, priority=1)
    texts = {p.name: p.text for p in fit("", [first, second], 100, "prompt").parts}
    assert len(texts["b"]) == 100
    assert len(texts["a"]) > 200


def test_stable_sections_come_first_whatever_their_place() -> None:
    prompt = fit("", [Section("late", "x"), Section("early", "y", stable=True)], 100, "prompt")
    assert prompt.text == "y\n\nx"
    assert prompt.stable_text == "y"


def test_a_section_that_does_not_keep_to_its_limit_stays_at_its_least() -> None:
    prompt = fit("", [Section("a", "short", lambda limit: "x" * (limit + 1))], 100, "prompt")
    assert prompt.text == "short"


def test_what_does_not_fit_names_the_largest_parts() -> None:
    with pytest.raises(
        PromptTooLong, match=r"the prompt needs at least about 303 tokens \(big 287, small 15, system 1\)"
    ):
        fit("abc", [Section("small", "x" * 50), Section("big", "y" * 1000)], 100, "prompt")


def test_a_long_reference_does_not_make_the_stable_part_depend_on_the_rest() -> None:
    reference = "\n".join(f"line {i}" for i in range(20_000))
    early = render_plan(Run().view(Kind.PLAN, reference=reference), 8_000)
    late = render_plan(first_cycle().view(Kind.PLAN, reference=reference), 8_000)
    assert early.stable_text == late.stable_text
    assert "more characters]" in early.stable_text
    assert len(early.stable_text) > 0.45 * 8_000 * 3.5  # it uses what it may
    assert "attempt 6" in late.text


def crowded(count: int) -> PromptView:
    """A planner's view with many actions on the frontier."""
    view = first_cycle().view(Kind.PLAN)
    tree = dict(view.state.tree)
    for i in range(10, 10 + count):
        tree[f"n{i}"] = replace(tree["n2"], id=f"n{i}", action=Action(f"Idea {i}", "because " * 60), value=(i % 7) / 7)
    return replace(view, state=replace(view.state, tree=tree))


def test_at_the_very_least_limit_every_frontier_action_is_still_there() -> None:
    view = crowded(300)
    with pytest.raises(PromptTooLong) as caught:
        render_plan(view, 1_000)
    least = int(re.findall(r"about ([\d,]+) tokens", str(caught.value))[0].replace(",", ""))
    prompt = render_plan(view, least + 1)
    assert all(f'- n{i} "Idea {i}" under root' in prompt.text for i in range(10, 310))
    assert "frontier" in str(caught.value)


def test_the_frontier_stands_in_the_order_in_which_the_engine_takes_it() -> None:
    text = render_plan(crowded(30)).text
    values = re.findall(r"^- n\d+ .* under root: V (\d\.\d\d)", text, re.MULTILINE)
    assert len(values) == 32
    assert values == sorted(values, reverse=True)
