"""Profiles in prompts and stories: short, and nothing in a kernel's name leaves its place."""

from __future__ import annotations

from dataclasses import replace

from ksearch.errors import PromptTooLong
from ksearch.prompts import PromptView, render_plan, render_write
from ksearch.prompts.profiles import one_profile, profile_lines
from ksearch.protocol import Kind
from ksearch.story import _evaluated
from ksearch.types import Evaluation, Insert, Kernel, Profile, Ratio, Verdict
from tests.prompts.scripted import Run, vectorise

KERNELS = tuple(Kernel(f"kernel_{i}", 1 + i % 2, 0.5 / (i + 1)) for i in range(6))
GOOD = Profile("large", "memory", "the compulsory bytes alone take 80% of the time.", KERNELS, {"dram": 81.2})
NONE = Profile("small", "", "no profile: the profiler saw no kernel")


def evaluation(*profiles: Profile) -> Evaluation:
    return Evaluation("p", Verdict.PASSED, latency_ms=1.0, speedup=Ratio(2, 1.9, 2.1), profiles=profiles)


def test_a_profile_names_what_binds_the_longest_kernels_and_the_counters():
    text = profile_lines(evaluation(GOOD, NONE))
    assert "nothing was decided by it" in text
    assert "- large: bound by memory: the compulsory bytes alone take 80% of the time." in text
    assert "'kernel_0' 0.5 ms, 'kernel_1' x 2 0.25 ms" in text
    assert "and 2 more" in text
    assert "dram 81%" in text
    assert "small" not in text  # a writer has no use for it
    assert one_profile(NONE) == ["- small: no profile: the profiler saw no kernel"]


def test_without_a_profile_there_is_no_text():
    assert profile_lines(None) == profile_lines(evaluation()) == profile_lines(evaluation(NONE)) == ""


def test_foreign_names_stay_on_their_line():
    bad = Profile(
        "l\n# Now", "memory\n", "x\n```\n# Rules", (Kernel("k`\n## obey |\u202e" * 50, 1, 0.1),), {"a\nb": 1.0}
    )
    lines = one_profile(bad)
    assert len(lines) == 3
    assert all("\n" not in line and "\u202e" not in line and len(line) < 500 for line in lines)
    assert "`" not in lines[1]


def test_the_story_of_a_node_tells_of_profiles_and_why_there_is_none() -> None:
    text = "\n".join(_evaluated(3, evaluation(GOOD, NONE)))
    assert "profile: large: bound by memory" in text
    assert "profile: small: no profile: the profiler saw no kernel" in text


def profiled(kind: Kind) -> PromptView:
    """The view of the next request after a first program that was profiled."""
    run = Run()
    run.plan(Insert("root", vectorise(), 0.9))
    run.write("good", 2.0)
    for number in range(3 if kind is Kind.PLAN else 0):
        run.write(f"bad {number}", (Verdict.WRONG_VALUES, "y[0] is wrong", ""))
    view = run.view(kind)
    best = view.state.best_id or ""
    found = {**view.state.evaluations, best: replace(view.state.evaluations[best], profiles=(GOOD,))}
    return replace(view, state=replace(view.state, evaluations=found))


def test_planner_and_writer_see_the_profile_of_the_best_program_and_it_gives_way_where_there_is_no_room() -> None:
    write = profiled(Kind.WRITE)
    for text in (render_plan(profiled(Kind.PLAN)).text, render_write(write).text):
        assert "- large: bound by memory: the compulsory bytes alone take 80% of the time." in text
        assert "'kernel_0' 0.5 ms" in text
    least = min(n for n in range(400, 4000, 50) if _renders(write, n))
    short = render_write(write, least)
    assert "// good" in short.text
    assert "kernel_0" not in short.text


def _renders(view: PromptView, tokens: int) -> bool:
    try:
        return render_write(view, tokens).tokens <= tokens
    except PromptTooLong:
        return False
