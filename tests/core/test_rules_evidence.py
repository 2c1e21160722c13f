"""Design 2.2: an improvement is a paired interval that excludes 1, not a lucky time."""

from __future__ import annotations

from dataclasses import replace

from ksearch import events as ev
from ksearch.protocol import Kind
from ksearch.types import Action, Evaluation, Insert, Ratio, Verdict, WorkloadResult
from tests.core.story import Story, add, child_at_work, passed, pid, planned


def test_the_first_pass_is_an_improvement() -> None:
    story = planned(add("first"))
    story.attempt("slow", 0.1)
    assert story.last(ev.Judged).improved
    assert story.last(ev.Judged).new_best
    assert story.state.best_id == pid("slow")


def test_a_failed_attempt_is_never_an_improvement() -> None:
    story = planned(add("first"))
    story.attempt("wrong", None)
    judged = story.last(ev.Judged)
    assert (judged.improved, judged.beats_parent, judged.new_best) == (False, False, False)


def test_an_improvement_needs_a_paired_interval_above_1() -> None:
    story = planned(add("first"))
    story.attempt("a", 2)
    story.attempt("b", 2, a=Ratio(1.02, 1.001, 1.05))
    assert story.last(ev.Judged).improved
    assert story.last(ev.Judged).versus_best == Ratio(1.02, 1.001, 1.05)


def test_noise_is_no_improvement() -> None:
    story = planned(add("first"))
    story.attempt("a", 2)
    story.attempt("b", 2.5, a=Ratio(1.015, 0.99, 1.03))
    assert not story.last(ev.Judged).improved
    assert not story.last(ev.Judged).new_best


def test_paired_times_decide_against_speedups_measured_at_other_moments() -> None:
    story = planned(add("first"))
    story.attempt("a", 2)
    story.attempt("b", 9, a=0.9)
    assert not story.last(ev.Judged).improved
    assert story.state.best_id == pid("a")


def test_programs_that_were_not_timed_together_compare_by_both_their_intervals() -> None:
    story = planned(add("first"))
    story.attempt("a", Ratio(2, 1.8, 2.2))
    story.attempt("b", Ratio(2.3, 2.1, 2.5))  # 2.1 / 2.2 is below 1
    assert not story.last(ev.Judged).improved
    story.attempt("c", Ratio(2.5, 2.3, 2.7))  # 2.3 / 2.2 is above 1
    assert story.last(ev.Judged).improved


def test_the_best_program_of_the_run_may_come_from_any_cycle() -> None:
    story = child_at_work()
    story.attempt("a", 1.5, parent=0.7)
    assert story.state.best_id == pid("parent")
    story.attempt("b", 3, parent=1.5, a=2)
    assert story.state.best_id == pid("b")


def test_times_of_different_devices_are_never_compared() -> None:
    story = planned(add("a"))
    story.write("a")
    story.tell(story.hand_out(Kind.EVALUATE), passed("a", 2, device="H200"))
    story.write("b")
    story.tell(story.hand_out(Kind.EVALUATE), passed("b", 3, device="A100"))
    assert not story.last(ev.Judged).improved
    assert story.state.best_id == pid("a")


def test_a_program_timed_on_another_device_does_not_beat_its_parent_by_those_times() -> None:
    story = child_at_work()
    story.write("a")
    story.tell(story.hand_out(Kind.EVALUATE), passed("a", 9, device="another"))
    assert not story.last(ev.Judged).beats_parent
    assert story.last(ev.Judged).improved
    assert story.state.best_id == pid("parent")


def test_what_surely_beats_the_best_of_the_run_is_not_held_back_by_a_wide_interval_against_the_cycles() -> None:
    story = planned(add("first", 0.9), add("second", 0.8), stagnation=2)
    story.attempt("best", 2)
    story.fails(2)
    story.plan()
    story.attempt("a", Ratio(2, 1.5, 2.5), best=Ratio(1.0, 0.9, 1.1))
    story.attempt("b", 2.1, a=Ratio(1.03, 0.98, 1.08), best=1.05)
    assert story.last(ev.Judged).new_best
    assert story.last(ev.Judged).improved, "the next program is written from it"


def aimed(text: str, rival: str, overall: float, **on: Ratio) -> Evaluation:
    """`text` against `rival`: its ratio over all workloads, noisy, and those on each."""
    rows = tuple(WorkloadResult(k, Verdict.PASSED, against={pid(rival): v}) for k, v in on.items())
    wide = Ratio(overall, overall * 0.9, overall * 1.1)
    return replace(passed(text, 2.0, **{rival: wide}), workloads=rows)


def aimed_story(overall: float, low: float) -> Story:
    story = planned(Insert("root", Action("small batches", workloads=("small", "tiny")), 0.5))
    story.attempt("a", 2)
    story.write("b")
    faster, same = Ratio(1.4, low, 1.5), Ratio(1.0, 0.9, 1.1)
    done = aimed("b", "a", overall, small=faster, tiny=Ratio(1.0, 0.99, 1.01), large=same)
    story.tell(story.hand_out(Kind.EVALUATE), done)
    return story


def test_an_aimed_action_improves_by_the_workloads_it_is_aimed_at() -> None:
    assert aimed_story(overall=1.05, low=1.3).last(ev.Judged).improved
    assert not aimed_story(overall=1.05, low=1.005).last(ev.Judged).improved, "0.99 on the other one outweighs it"


def test_an_aimed_action_that_is_slower_over_all_does_not_improve() -> None:
    assert not aimed_story(overall=0.99, low=1.3).last(ev.Judged).improved
