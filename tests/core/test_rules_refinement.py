"""Design 2.2: one action is written, measured and fed back, again and again, until it stagnates."""

from __future__ import annotations

from ksearch import events as ev
from ksearch.protocol import Budget, Kind, Refusal
from ksearch.types import Action, Insert, Verdict
from tests.core.story import (
    ACTIVE,
    OPEN,
    PRUNED,
    REJECTED,
    SOLVED,
    add,
    child_at_work,
    kinds,
    passed,
    pid,
    planned,
    program,
)


def test_an_attempt_is_written_then_measured_and_the_next_one_follows() -> None:
    story = planned(add("first"))
    story.write("a")
    assert story.node("n1").status is ACTIVE
    story.measure("a", None)
    story.hand_out(Kind.WRITE)


def test_the_verdict_and_its_reason_are_there_for_the_next_writer() -> None:
    story = planned(add("first"))
    story.attempt("a", None)
    (attempt,) = story.state.cycles["n1"].attempts
    assert attempt.verdict is Verdict.WRONG_VALUES
    assert attempt.reason == "17 of 4096 values differ"


def test_under_the_root_writing_starts_from_nothing() -> None:
    assert planned(add("first")).hand_out(Kind.WRITE).program_id is None


def test_writing_starts_from_the_parents_program() -> None:
    assert child_at_work().hand_out(Kind.WRITE).program_id == pid("parent")


def test_writing_goes_on_from_the_best_of_the_cycle() -> None:
    story = child_at_work()
    story.attempt("a", 3, parent=1.5)
    story.attempt("b", 2.5, parent=1.2, a=0.8)
    assert story.hand_out(Kind.WRITE).program_id == pid("a")


def test_a_program_is_timed_beside_the_cycles_best_its_parent_and_the_best_of_the_run() -> None:
    story = child_at_work()
    story.attempt("a", 1.5, parent=0.75)
    story.write("b")
    assert story.hand_out(Kind.EVALUATE).against == (pid("a"), pid("parent"))


def test_k_attempts_in_a_row_without_improvement_close_the_cycle() -> None:
    story = planned(add("first"), stagnation=3)
    story.attempt("a", 2)
    story.attempt("b", 2, a=1)
    story.attempt("c", 2, a=1)
    assert story.node("n1").status is ACTIVE
    story.attempt("d", 2, a=1)
    assert story.last(ev.CycleClosed).reason == "stagnation"


def test_an_improvement_starts_the_count_anew() -> None:
    story = planned(add("first"), stagnation=3)
    for text, gain in [("a", 1), ("b", 1), ("c", 1), ("d", 1.5), ("e", 1), ("f", 1)]:
        story.attempt(text, 2, **{"a": gain} if text != "a" else {})
    assert story.node("n1").status is ACTIVE
    story.attempt("g", 2, a=1, d=1)
    assert story.last(ev.CycleClosed).reason == "stagnation"
    assert story.node("n1").program_id == pid("d")


def test_a_reply_without_a_program_counts_as_an_attempt() -> None:
    story = planned(add("first"), stagnation=3)
    story.tell(story.hand_out(Kind.WRITE), Refusal(Verdict.TRUNCATED, "cut off"))
    assert story.state.attempts == 1
    assert story.state.evaluated == 0
    story.fails(2)
    assert story.last(ev.CycleClosed).reason == "stagnation"


def test_an_identical_program_is_an_attempt_but_is_never_measured_again() -> None:
    story = planned(add("first"))
    story.attempt("a", 2)
    events = story.tell(story.hand_out(Kind.WRITE), program("a"))
    assert kinds(events) == ["WriteFailed", "Judged"]
    assert story.last(ev.WriteFailed).verdict is Verdict.DUPLICATE
    assert story.last(ev.WriteFailed).program_id == pid("a")
    assert story.state.attempts == 2
    story.hand_out(Kind.WRITE)


def creeping(enabling: bool) -> list[str]:
    """Attempts at a child that stays behind its parent, but improves on itself each time; K = 2."""
    story = child_at_work(enabling, stagnation=2)
    previous: dict[str, float] = {}
    for i in range(12):
        if "n2" not in story.state.cycles and i:
            break
        story.attempt(f"c{i}", 1 + i / 100, parent=0.5 + i / 200, **previous)
        previous = {f"c{i}": 1.01}
    closed = story.last(ev.CycleClosed)
    assert closed.node_id == "n2"
    return [closed.reason, str(story.node("n2").attempts)]


def test_an_attempt_that_passes_without_improving_can_count_for_more() -> None:
    story = planned(add("first"), stagnation=4, passing_weight=2)
    story.attempt("a", 2)
    story.attempt("b", None)
    story.attempt("c", 1.9, a=0.95)  # 3 of 4: one that failed, one that passed
    assert story.node("n1").status is ACTIVE
    closed = story.attempt("d", None)
    assert any(isinstance(e, ev.CycleClosed) and e.reason == "stagnation" for e in closed)


def test_k_attempts_after_the_first_pass_that_stay_behind_the_parent_close_the_cycle() -> None:
    assert creeping(enabling=False) == ["behind_parent", "3"]


def test_an_enabling_step_may_stay_behind_its_parent_until_3k_attempts_close_it() -> None:
    assert creeping(enabling=True) == ["attempt_limit", "6"]


def test_attempts_before_the_first_pass_do_not_count_as_behind_the_parent() -> None:
    story = child_at_work(stagnation=2)
    story.fails(1)
    story.attempt("a", 1, parent=0.5)
    story.attempt("b", 1.1, parent=0.55, a=1.1)
    assert story.node("n2").status is ACTIVE
    story.attempt("c", 1.2, parent=0.6, b=1.1)
    assert story.last(ev.CycleClosed).reason == "behind_parent"


def test_a_cycle_that_has_beaten_its_parent_is_not_behind_it() -> None:
    story = child_at_work(stagnation=2)
    story.attempt("a", 3, parent=1.5)
    story.attempt("b", 3, parent=1.6, a=1.1)
    story.attempt("c", 3, parent=1.7, b=1.1)
    assert story.node("n2").status is ACTIVE


def test_under_the_root_it_is_the_baseline_that_has_to_be_beaten() -> None:
    story = planned(add("first"), stagnation=2)
    story.attempt("a", 0.5)
    story.attempt("b", 0.6, a=1.2)
    story.attempt("c", 0.7, b=1.2)
    assert story.node("n1").closed_because == "behind_parent"
    assert story.node("n1").program_id == pid("c"), "it is solved all the same: its children may pay"


def test_3k_attempts_close_a_cycle_however_well_it_goes() -> None:
    story = planned(add("first"), stagnation=2)
    for i in range(6):
        assert "n1" in story.state.cycles or i == 0
        story.attempt(f"c{i}", 1 + i, **({f"c{i - 1}": 1.5} if i else {}))
    assert story.last(ev.CycleClosed).reason == "attempt_limit"


def test_the_best_passing_program_solves_the_node() -> None:
    story = child_at_work()
    story.attempt("a", 3, parent=1.5)
    story.attempt("b", 4, parent=2, a=1.3)
    story.attempt("c", 2.5, parent=1.2, b=0.6)
    story.fails(2)
    node = story.node("n2")
    assert (node.status, node.program_id, node.attempts) == (SOLVED, pid("b"), 5)
    assert node.closed_because == "stagnation"
    assert node.speedup == passed("b", 4).speedup
    assert node.gain
    assert node.gain.value == 2


def test_the_gain_under_the_root_is_over_the_baseline() -> None:
    story = planned(add("first"))
    story.attempt("a", 1.7)
    story.fails(3)
    gain = story.node("n1").gain
    assert gain
    assert gain.value == 1.7


def test_no_passing_program_rejects_the_node() -> None:
    story = planned(add("first"))
    for text in "abc":
        story.attempt(text, None)
    assert story.node("n1").status is REJECTED
    assert story.node("n1").program_id is None


def test_an_action_that_the_end_cuts_short_before_anything_passed_is_open_again() -> None:
    story = planned(add("a", name="a"), add("b", under="a"), budget=Budget(1))
    story.attempt("a", None)
    assert story.last(ev.CycleClosed).unfinished
    assert story.statuses() == {"n1": OPEN, "n2": OPEN}


def test_a_rejected_node_takes_its_open_descendants_with_it_in_the_same_event() -> None:
    story = planned(add("p", 0.9, name="p"), add("child", under="p", name="c"), add("grandchild", under="c"))
    story.fails(3)
    assert story.last(ev.CycleClosed).pruned == ("n2", "n3")
    assert story.statuses() == {"n1": REJECTED, "n2": PRUNED, "n3": PRUNED}


def test_a_solved_node_keeps_its_descendants() -> None:
    story = planned(add("p", 0.9, name="p"), add("child", under="p"))
    story.attempt("a", 2)
    story.fails(3)
    assert story.last(ev.CycleClosed).pruned == ()
    assert story.statuses() == {"n1": SOLVED, "n2": OPEN}


def test_the_end_of_the_budget_closes_an_open_cycle_with_its_best() -> None:
    story = planned(add("first"), budget=Budget(2), stagnation=5)
    story.attempt("a", 2)
    events = story.attempt("b", 3, a=1.5)
    assert kinds(events) == ["Evaluated", "Judged", "CycleClosed", "Ended"]
    assert story.last(ev.CycleClosed).reason == "budget: evaluations"
    assert story.node("n1").program_id == pid("b")


def test_predictions_stand_beside_their_outcomes() -> None:
    story = planned(Insert("root", Action("a", predicted_speedup=3.0)))
    story.attempt("a", 2)
    story.fails(3)
    node = story.node("n1")
    assert node.status is SOLVED
    assert node.action.predicted_speedup == 3.0
    assert node.gain
    assert node.gain.value == 2
