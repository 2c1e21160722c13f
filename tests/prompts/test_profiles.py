"""Profiles in prompts and stories: short, and nothing in a kernel's name leaves its place."""

from __future__ import annotations

from ksearch.prompts.profiles import one_profile, profile_lines
from ksearch.types import Evaluation, Kernel, Profile, Ratio, Verdict

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
