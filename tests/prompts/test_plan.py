from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ksearch import events as ev
from ksearch.errors import PromptTooLong
from ksearch.prompts import PromptView, render_plan
from ksearch.protocol import Budget, Kind, SearchConfig
from ksearch.replies import parse_plan, plan_form
from ksearch.state import Pending
from ksearch.types import Action, Insert, Verdict
from tests.prompts.scripted import Run, first_cycle, vectorise


def text_of(view: PromptView, **options: int) -> str:
    return render_plan(view, **options).text


def test_the_first_plan_sees_task_machine_rules_and_the_form() -> None:
    text = text_of(Run().view(Kind.PLAN, reply_form=plan_form()))
    for wanted in (
        "Row softmax, fp32", "large: rows = 2000, cols = 2500 (40 MB", "def reference", "AVX-512",
        "At most 3 inserts", "The tree is empty", "BASELINE SOURCE", plan_form().strip(), "60 of 60 evaluations",
    ):  # fmt: skip
        assert wanted in text
    assert "The cycle that has just closed" not in text
    assert "# Your predictions" not in text


def test_a_closed_cycle_is_told_attempt_by_attempt() -> None:
    text = text_of(first_cycle().view(Kind.PLAN))
    cycle = text[text.index("# The cycle that has just closed: n1") :]
    assert "attempt 1: compile_error at build: kernel.cpp:12:5" in cycle
    assert "attempt 3: passed, score 310" in cycle
    assert "1.24x [1.22, 1.26] over the cycle's best until then, an improvement" in cycle
    assert "attempt 4: unparsable: no code block" in cycle
    assert "attempt 5: passed" in cycle
    assert "no improvement" in cycle
    assert "attempt 6: wrong_values at check" in cycle
    assert "In function 'run'" in cycle  # the log
    assert "| large | 6.774 | 21 | 3.10x | 5.9 | 2.95 | 3.23x |" in cycle


def test_predictions_stand_beside_their_outcomes() -> None:
    run = short_search_before_the_last_plan()
    text = text_of(run.view(Kind.PLAN))
    assert "2 predictions: 1 solved, 1 without a passing program" in text
    assert "measured gain was 0.78 times the predicted one" in text
    assert "- n1: predicted 4.00x, measured 3.10x [3.05, 3.15]" in text
    assert "- n4: predicted 1.20x, measured no passing program" in text


def short_search_before_the_last_plan() -> Run:
    run = first_cycle()
    run.plan(Insert("n1", Action("Two rows at once", "", 2, 1.2), 0.8), assessment="Memory binds now.")
    for i in range(3):
        run.write(f"two rows {i}", (Verdict.WRONG_VALUES, "bad", ""))
    return run


def test_the_planner_reads_its_last_assessment_and_what_people_say() -> None:
    run = short_search_before_the_last_plan()
    run.command(ev.Note("look at small", "n2"))
    text = text_of(run.view(Kind.PLAN))
    assert "Memory binds now." in text
    assert '- ada on n2: "look at small"' in text


def test_a_refusal_comes_back_with_its_reason() -> None:
    run = first_cycle()
    run.plan(Insert("n99", Action("nowhere")))  # refused by the engine: the same request is asked again
    text = text_of(run.view(Kind.PLAN))
    assert "Your last answer was not taken" in text
    assert "parent 'n99' of 'nowhere' does not exist" in text


def test_active_and_waiting_actions_are_shown_so_that_no_twins_are_proposed() -> None:
    run = Run()
    run.plan(
        Insert("root", vectorise(), 0.9, "v"),
        Insert("v", Action("Later step"), 0.5),
        Insert("root", Action("Other"), 0.1),
    )
    run.next(Kind.WRITE)
    view = replace(Run().view(Kind.PLAN), state=run.state)
    text = text_of(view)
    assert '- n1 "Vectorise the exponential" under root: being worked on, 1 attempt' in text
    assert '# Waiting for their parents\n\n- n2 "Later step" under n1: V 0.50' in text


def test_plans_that_others_are_making_are_shown_so_that_no_twins_are_proposed() -> None:
    run = short_search_before_the_last_plan()
    request, state = run.view(Kind.PLAN).request, run.state
    lease = next(e for e in run.log if isinstance(e, ev.Leased))
    other = replace(request, id="r999", node_id="n2")
    pending = {**state.pending, other.id: Pending(other, state.tree, replace(lease, request_id=other.id))}
    alone, beside = (replace(run.view(Kind.PLAN), state=replace(state, pending=p)) for p in (state.pending, pending))
    assert "another plan" not in text_of(alone)
    assert "# Active now: propose no twin of these\n\n- another plan is being made now, after n2" in text_of(beside)


def test_stable_parts_come_first_and_stay_the_same_from_call_to_call() -> None:
    early, late = render_plan(Run().view(Kind.PLAN)), render_plan(first_cycle().view(Kind.PLAN))
    assert early.stable_text == late.stable_text
    assert early.text.startswith(early.stable_text)
    assert "REPLY FORM" in early.stable_text
    assert early.sha256 != late.sha256


def test_details_go_before_the_frontier_does() -> None:
    run = first_cycle()
    whole = render_plan(run.view(Kind.PLAN))
    small = render_plan(run.view(Kind.PLAN), max_tokens=2000)
    assert small.tokens <= 2000 < whole.tokens
    for line in ('- n2 "Mask the ragged end"', '- n3 "Table lookup for exp"', "REPLY FORM", "attempt 3: passed"):
        assert line in small.text


SHORT = r"planner's prompt needs at least about 1,\d\d\d tokens \(rules .*limit is 800: raise"


def test_what_cannot_fit_is_an_error_with_size_and_cure() -> None:
    with pytest.raises(
        PromptTooLong, match=r"planner's prompt needs at least about 1,\d\d\d tokens \(rules .*limit is 800: raise"
    ):
        render_plan(first_cycle().view(Kind.PLAN), max_tokens=800)


def test_an_action_begun_before_the_run_stopped_is_marked_as_such() -> None:
    run = Run(SearchConfig(budget=Budget(1), stagnation=3))
    run.plan(Insert("root", vectorise(), 0.9))
    run.write("with a fault", (Verdict.WRONG_VALUES, "off by one", ""))
    view = replace(Run().view(Kind.PLAN), state=run.state)
    assert "predicted 4.00x, begun: 1 attempt before the run stopped" in text_of(view)


def test_the_ids_that_an_edit_may_name_stand_close_to_the_end() -> None:
    text = text_of(first_cycle().view(Kind.PLAN, reply_form=plan_form()))
    assert "Insert under: root, n1, n2, n3. Update or prune: n2, n3." in text[-300:]
    assert not re.search(r'"n\d+"', plan_form()), "an id in the example is copied by weak models"


def test_workloads_that_moved_stand_with_each_attempt() -> None:
    text = text_of(first_cycle().view(Kind.PLAN))
    assert "NEW BEST OF THE RUN, changed: small 1.24x [1.22, 1.26], large 1.24x [1.22, 1.26]" in text
    assert re.search(r"attempt 5: passed, .* no improvement\n", text), "nothing moved"


def test_a_small_models_plan_prompt_is_short_and_names_what_it_may_start_from() -> None:
    view = first_cycle().view(Kind.PLAN)
    brief, whole = render_plan(view, brief=True), render_plan(view)
    assert len(brief.text) < len(whole.text) / 2
    assert '- n1 "Vectorise the exponential" under root: 3.10x' in brief.text
    assert '- n2 "Mask the ragged end" under root' in brief.text
    assert "one of n1, root" in brief.text
    assert "// third" in brief.text
    assert parse_plan(brief.text.split("```json")[1].split("```")[0], ["root"]).edits
