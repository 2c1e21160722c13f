from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch import events as ev
from ksearch import steer
from ksearch.errors import InvalidCommand
from ksearch.protocol import Budget, Kind, Lost, SearchConfig
from ksearch.state import State
from ksearch.story import node_story
from ksearch.types import Action, Insert, Node, NodeStatus, Ratio, Verdict
from ksearch.views import summary, tree_text
from tests.core.drive import Pool, config
from tests.prompts.scripted import Run, first_cycle, program, short_search, vectorise


def rows(text: str) -> dict[str, str]:
    """Lines of the tree by node id."""
    found = {}
    for line in text.splitlines():
        if match := re.search(r"[●◐○✗·] (root|n\d+)", line):
            found[match[1]] = line
    return found


def test_the_tree_shows_status_value_attempts_speedup_and_prediction_against_outcome() -> None:
    run = short_search()
    run.command(ev.Pin("n5"))
    assert tree_text(run.state).splitlines() == [
        "                                                  V  att  speedup    said → gain",
        "● root: the baseline                                        1.00x",
        "├─● n1 Vectorise the exponential               0.90    6   ★3.10x   4.00 → 3.10x",
        "│ ├─✗ n4 Two rows at once                      0.80    3             1.20 → none",
        "│ └─○ n5 ↑ Non-temporal stores                 0.60                     1.30 → ?",
        "│   └─○ n6 Prefetch the next row               0.50                     1.10 → ?",
        "├─○ n2 Mask the ragged end                     0.30                     1.05 → ?",
        "└─· n3 Table lookup for exp                    0.20",
        "",
        "● solved  ◐ being worked on  ○ open  ✗ rejected  · pruned  ★ best  ↑ pinned",
    ]


def test_an_action_at_work_shows_what_it_has_so_far() -> None:
    run = short_search()
    run.write("nt", 3.5)
    run.next(Kind.WRITE)
    shown = rows(tree_text(run.state))
    assert re.search(r"◐ n5 .* 0\.60 +2 +★3\.50x +1\.30 → 1\.13x$", shown["n5"])
    assert "★" not in shown["n1"]


def test_colours_are_only_where_asked_and_ascii_is_ascii() -> None:
    state = short_search().state
    assert "\x1b[" not in tree_text(state)
    assert tree_text(state, color=True).count("\x1b[0m") == len(state.tree)
    plain = tree_text(replace_title(state, "n2", "größer 漢"), ascii=True)
    assert plain.isascii()
    assert "`-. n3 Table lookup" in plain


def replace_title(state: State, node_id: str, title: str) -> State:
    node = state.tree[node_id]
    return replace(state, tree={**state.tree, node_id: replace(node, action=Action(title))})


def test_wide_characters_keep_the_columns_in_line() -> None:
    shown = rows(tree_text(replace_title(short_search().state, "n2", "漢字" * 40)))
    upto = shown["n2"].index("0.30")
    columns = sum(2 if c in "漢字" else 1 for c in shown["n2"][:upto])
    assert columns == shown["n3"].index("0.20")
    assert "…" in shown["n2"]


def test_a_deep_branch_keeps_its_ids() -> None:
    tree = dict(State().tree)
    for i in range(1, 60):
        tree[f"n{i}"] = Node(f"n{i}", f"n{i - 1}" if i > 1 else "root", Action(f"step {i}"))
    text = tree_text(replace(State(), tree=tree))
    assert set(rows(text)) == {"root", *(f"n{i}" for i in range(1, 60))}
    assert max(map(len, text.splitlines())) <= 80


def test_a_tree_of_a_thousand_levels_does_not_overflow_the_stack() -> None:
    tree = dict(State().tree)
    for i in range(1, 3000):
        tree[f"n{i}"] = Node(f"n{i}", f"n{i - 1}" if i > 1 else "root", Action("step"))
    assert "n2999 step" in tree_text(replace(State(), tree=tree))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([60, 80, 120]))
def test_every_node_has_its_line_and_its_story_and_all_fit_the_width(seed: int, width: int) -> None:
    pool = Pool(seed, config(max_active=2, width=2), chaos=0.1)
    pool.run()
    for i in {0, len(pool.log) // 2, len(pool.log)}:
        state, log = pool.states[i], pool.log[:i]
        text = tree_text(state, width)
        assert set(rows(text)) == set(state.tree)
        texts = [text, summary(state, width), *(node_story(log, state, node_id, width) for node_id in state.tree)]
        assert all(len(line) <= width for t in texts for line in t.splitlines())


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_a_story_tells_as_many_attempts_and_the_same_end_as_the_state(seed: int) -> None:
    pool = Pool(seed, config(), chaos=0.1)
    pool.run()
    for node in pool.state.tree.values():
        story = node_story(pool.log, pool.state, node.id)
        if node.closed_because:
            ended = "open again" if node.status in ("open", "pruned") else f"closed as {node.status}"
            told = f"{ended} after {node.attempts} attempt"
            assert told in re.sub(r"\s+", " ", story)
        if node.status == "pruned":
            assert story.count("pruned") >= 2  # in the head, and why


# --- stories -------------------------------------------------------------------------------------------------------


def told(run: Run, node_id: str) -> str:
    """A story with its line breaks folded."""
    return re.sub(r"\s+", " ", node_story(run.log, run.state, node_id))


def test_a_story_tells_everything_in_order() -> None:
    run = short_search()
    run.command(ev.Note("small sizes?", "n1"))
    text = told(run, "n1")
    expected = [
        "n1 Vectorise the exponential", "under root, solved, V 0.90, difficulty 2",
        "predicted 4.00x over its parent, measured 3.10x [3.05, 3.15]", "why: expf is scalar",
        "0:00:10 inserted by plan r0", "attempt 1: program", "attempt 1: compile_error at build: kernel.cpp:12:5",
        "attempt 3: passed, 3.10x", "small 0.06774 ms (3.10x), large 6.774 ms (3.10x)",
        "judged attempt 3: an improvement, 1.24x [1.22, 1.26] over the cycle's best",
        "attempt 4: unparsable: no code block", "closed as solved after 6 attempts: stagnation",
        "plan r12 after this cycle: inserted n4, n5, n6; pruned n3", 'said: "The exponential was',
        'ada notes: "small sizes?"',
    ]  # fmt: skip
    at = 0
    for piece in expected:
        assert piece in text[at:], piece
        at = text.index(piece, at)


def test_a_pruned_nodes_story_names_who_and_why() -> None:
    run = short_search()
    assert 'pruned by plan r12: "contained in n1"' in told(run, "n3")
    run.command(ev.PruneNode("n5", "no time"))
    assert 'pruned by ada: "no time"' in told(run, "n5")
    assert 'pruned with n5 by ada: "no time"' in told(run, "n6")


def test_a_child_of_a_rejected_node_tells_why_it_went() -> None:
    run = Run()
    run.plan(Insert("root", vectorise(), 0.9, "v"), Insert("v", Action("later"), 0.5))
    for i in range(3):
        run.write(f"bad {i}", (Verdict.WRONG_VALUES, "no", ""))
    assert "pruned, because n1 above it was rejected" in told(run, "n2")
    assert "closed as rejected after 3 attempts: stagnation; pruned with it: n2" in told(run, "n1")
    assert "no attempt passed" in told(run, "n1")


def test_lost_work_late_leases_and_refused_plans_are_told() -> None:
    run = first_cycle()
    run.plan(Insert("n99", Action("nowhere")))
    run.plan(Insert("n1", Action("child"), 0.9))
    run.tell(run.next(Kind.WRITE), Lost("provider is down"))
    request = run.next(Kind.WRITE)
    run.record([ev.Expired(at=run.now, request_id=request.id, reason="the lease ran out")])
    assert "plan r12 after this cycle was refused: parent 'n99' of 'nowhere'" in told(run, "n1")
    assert "attempt 1: lost, to be asked again: provider is down" in told(run, "n4")
    assert "attempt 1: nobody answered in time: the lease ran out" in told(run, "n4")


def test_submitted_programs_and_peoples_doings_are_told() -> None:
    run = first_cycle()
    run.plan()
    run.record(steer.submit(run.state, program("mine"), "eve", run.now, "n2"))
    assert re.search(r"attempt 1: program [0-9a-f]{12} submitted by eve", told(run, "n2"))
    run.command(ev.AddAction("n1", Action("by hand"), 0.4))
    run.command(ev.Boost("n4", 0.7))
    assert "added by ada: V 0.40, difficulty 3" in told(run, "n4")
    assert "V set to 0.70 by ada" in told(run, "n4")
    assert 'child n4 added by ada: "by hand"' in told(run, "n1")
    assert "plan r0: inserted n1, n2, n3" in told(run, "root")


def test_an_unknown_node_is_refused_with_the_cure() -> None:
    with pytest.raises(InvalidCommand, match="'n77' does not exist: `ksearch show`"):
        node_story([], State(), "n77")


# --- the summary ---------------------------------------------------------------------------------------------------


def test_the_summary_names_best_tree_budget_and_what_is_out() -> None:
    run = short_search()
    run.next(Kind.WRITE)
    text = re.sub(r"\s+", " ", summary(run.state))
    for wanted in (
        "status running", "best 3.10x [3.05, 3.15] over the baseline, n1 Vectorise the exponential, program",
        "1 solved, 1 rejected, 1 being worked on, 1 on the frontier, 1 waiting for their parents, 1 pruned",
        "9 of 60 evaluations, 10 of 180 attempts, 10,800 tokens, 0.12 of 5.00 USD", "write for n5, held by me",
    ):  # fmt: skip
        assert wanted in text


def test_the_summary_says_when_nothing_passed_and_why_a_run_ended() -> None:
    run = Run(SearchConfig(budget=Budget(1), stagnation=3))
    assert "none yet: no program has passed" in summary(run.state)
    run.plan(Insert("root", vectorise()))
    run.write("bad", (Verdict.HANG, "no answer", ""))
    assert "ended: budget: evaluations" in summary(run.state)


def test_calls_of_unknown_price_are_not_told_as_free() -> None:
    assert "0.12 of 5.00 USD (and 2 calls of unknown price)" in re.sub(
        r"\s+", " ", summary(replace(short_search().state, unpriced=2))
    )


def cut_short() -> Run:
    """A budget that ends in the middle of a cycle, and is raised."""
    run = Run(SearchConfig(budget=Budget(2), stagnation=3))
    run.plan(Insert("root", vectorise()))
    run.write("bad 1", (Verdict.HANG, "no answer", ""))
    run.write("bad 2", (Verdict.WRONG_VALUES, "off by one", ""))
    assert run.state.ended
    run.command(ev.SetBudget(Budget(20)))
    return run


def test_an_action_that_was_cut_short_goes_on_counting_where_it_stopped() -> None:
    run = cut_short()
    assert re.search(r"○ n1 .* 2 +4.00 → \?$", rows(tree_text(run.state))["n1"])
    run.write("good", 2.0)
    text = told(run, "n1")
    assert "open again after 2 attempts, cut short: budget: evaluations" in text
    assert "judged attempt 3: the first that passed" in text


def test_a_loser_with_a_higher_speedup_is_explained() -> None:
    state = first_cycle().state
    assert "paired rounds" not in tree_text(state)
    lucky = replace(state.tree["n2"], status=NodeStatus.SOLVED, program_id="p", speedup=Ratio(9.0, 8.9, 9.1))
    text = tree_text(replace(state, tree={**state.tree, "n2": lucky}), 100)
    assert "The best is decided between programs in paired rounds." in text
