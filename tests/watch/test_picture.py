"""The picture, the keys and the pages as functions: no terminal, no store on disk."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ksearch import events as ev
from ksearch.cli.watch_keys import Quit, Read, Say, names, press
from ksearch.cli.watch_pages import MAX_TEXT, difference, page, show
from ksearch.cli.watch_picture import View, cursor_at, duration, order, picture, short
from ksearch.drivers import drive
from ksearch.protocol import Budget, Holder, SearchConfig
from ksearch.run import Run
from ksearch.state import State
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk
from ksearch.types import Action, NodeStatus, Program

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
HOSTILE = "</script>\x00\x1b[2J\u202eevil\nsecond line " + "x" * 5000
ALIVE = Holder("loop", "box", pid=1)


def searched(evaluations: int = 12, seed: int = 1) -> Run:
    store = open_store(":memory:")
    run = Run.create(store, "fake-1", SearchConfig(Budget(evaluations, usd=5.0, tokens=10**6)), {"task": "softmax"})
    run.command(ev.AddAction("root", Action(HOSTILE, HOSTILE), 0.9), "alice")
    drive(run, fake_desk(seed), sleep=lambda _: None)
    return run


@pytest.fixture(scope="module")
def ended() -> Run:
    return searched()


@pytest.fixture(scope="module")
def halfway() -> Run:
    """A search that stopped with work out: the last event leased something."""
    run = Run.create(open_store(":memory:"), "fake-2", SearchConfig(Budget(30)), {"task": "softmax"})
    desk = fake_desk(1)
    for _ in range(12):
        request = run.take(ALIVE, lease_s=600, render=lambda state, r: desk.prompt(run, state, r))
        desk.serve(run, request, ALIVE)
    run.take(ALIVE, lease_s=600, render=lambda state, r: desk.prompt(run, state, r))
    return run


def text_of(
    run: Run, view: View | None = None, width: int = 80, height: int = 24, later_s: float = 12.0, **more
) -> str:
    dead = more.pop("dead", lambda _: False)
    lines = picture(run.id, run.state, view or View(), run.state.last_at + later_s, width, height, dead=dead, **more)
    return "\n".join(text for _, text in lines)


# --- the picture ---------------------------------------------------------------------------------------------------


def test_the_header_says_how_the_run_stands(halfway: Run) -> None:
    head = text_of(halfway).splitlines()[:4]
    done = halfway.state.evaluations[halfway.state.best_id]
    assert head[0] == "fake-2  softmax  running"
    assert head[1].startswith(f"best   {done.speedup.value:.2f}x [")
    assert f"{halfway.state.best_id[:12]}" in head[1]
    assert "/30 evaluations" in head[2]
    assert head[3].startswith("health last event 12 s ago; n1 attempt ")
    assert "of 7 without gain" in head[3]


def test_work_that_is_out_has_a_lane_with_who_and_since_when(halfway: Run) -> None:
    (request,) = halfway.state.pending
    lane = next(line for line in text_of(halfway).splitlines() if line.startswith("out "))
    assert lane.split()[1] in ("plan", "write", "measure")
    assert request in lane
    assert lane.endswith("loop on box for 12 s")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"later_s": 700.0}, "nobody is at work: `ksearch resume` goes on"),  # the lease has run out
        ({"dead": lambda _: True}, "nobody is at work: `ksearch resume` goes on"),
        ({"view": View(problem="The store is away")}, "health The store is away"),
    ],
)
def test_the_health_line_names_what_is_wrong(halfway: Run, more: dict, said: str) -> None:
    assert said in text_of(halfway, **more)


def test_a_lost_call_is_in_the_health_line(halfway: Run) -> None:
    state = halfway.state
    pending = {id: replace(p, lost=("the provider is overloaded",)) for id, p in state.pending.items()}
    lines = picture("r", replace(state, pending=pending), View(), state.last_at, 80, 24, dead=lambda _: False)
    assert "lost: the provider is overloaded" in lines[3][1]


def test_an_ended_run_says_so_and_nobody_is_missed(ended: Run) -> None:
    head = text_of(ended).splitlines()
    assert head[0] == "fake-1  softmax  ended: budget: evaluations"
    assert head[3] == "health last event 12 s ago"


def test_a_run_without_events_but_the_first_can_be_looked_at() -> None:
    run = Run.create(open_store(":memory:"), "new", SearchConfig(Budget(3)))
    assert "none yet: no program has passed" in text_of(run)
    assert "root: the baseline" in text_of(run)


@given(
    width=st.integers(20, 200), height=st.integers(6, 60), cursor=st.sampled_from([None, "root", "n1", "n3", "gone"]),
    results=st.lists(st.text(max_size=300), max_size=9), asking=st.none() | st.text("n0123", max_size=5),
)  # fmt: skip
def test_it_fits_every_terminal_and_hides_nothing_dangerous(
    ended: Run, halfway: Run, width: int, height: int, cursor: str | None, results: list[str], asking: str | None
) -> None:
    for run in (ended, halfway):
        view = View(cursor, asking, last=[*results, HOSTILE])
        lines = picture(run.id, run.state, view, run.state.last_at + 5, width, height, dead=lambda _: False)
        assert len(lines) <= height
        text = "".join(line for _, line in lines)
        assert all(cell_len(line) <= width for _, line in lines)
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDI]
        assert sum("reverse" in style for style, _ in lines) == 1  # the cursor is always in sight


def test_ascii_terminals_get_ascii(ended: Run) -> None:
    assert text_of(ended, ascii=True).isascii()


def test_a_large_tree_is_shown_around_the_cursor() -> None:
    run = Run.create(open_store(":memory:"), "wide", SearchConfig(Budget(3)))
    for i in range(200):
        run.command(ev.AddAction("root", Action(f"idea {i}"), 0.1), "alice")
    shown = text_of(run, View("n100"))
    assert "> ├─○ n100 idea 99" in shown
    assert "200 actions, 1" in shown
    assert "n200" not in shown


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (99, "99 s"), (100, "1 min"), (7500, "2 h 05 min")])
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (999, "999"), (12345, "12.3k"), (2_050_000, "2.05M")])
def test_counts_are_short(count: int, text: str) -> None:
    assert short(count) == text


# --- keys ----------------------------------------------------------------------------------------------------------


def test_bytes_become_keys() -> None:
    named = ["j", "k", "enter", "backspace", "k", "j", "page up", "escape", "x"]
    assert names(b"jk\r\x7f\x1b[A\x1b[B\x1b[5~\x1bx") == named
    assert names(b"\x1b[1;5Cq\xff") == ["q"]  # Ctrl-right means nothing, nor does half a character


@given(st.binary(max_size=40))
def test_no_bytes_do_harm(ended: Run, data: bytes) -> None:
    view = View()
    for key in names(data):
        press(view, key, ended.state)
    assert text_of(ended, view)


def test_j_and_k_move_within_the_tree(ended: Run) -> None:
    view, ids = View("root"), [node.id for _, node in order(ended.state)]
    for key, at in (("j", 1), ("j", 2), ("k", 1), ("G", len(ids) - 1), ("j", len(ids) - 1), ("g", 0), ("k", 0)):
        assert press(view, key, ended.state) is None
        assert view.cursor == ids[at]


def test_the_cursor_follows_the_work_until_it_is_moved(halfway: Run) -> None:
    rows, view = order(halfway.state), View()
    assert rows[cursor_at(view, rows)][1].status is NodeStatus.ACTIVE
    press(view, "k", halfway.state)
    assert rows[cursor_at(view, rows)][1].id == "root"
    press(view, "escape", halfway.state)
    assert rows[cursor_at(view, rows)][1].status is NodeStatus.ACTIVE


def test_p_pauses_and_resumes(halfway: Run) -> None:
    assert press(View(), "p", halfway.state) == Say(ev.Pause("asked at the terminal"))
    assert press(View(), "p", replace(halfway.state, paused="lunch")) == Say(ev.Resume())


def test_x_asks_which_node_and_takes_an_answer(halfway: Run) -> None:
    view = View("n2")
    assert press(view, "x", halfway.state) is None
    assert view.asking == "n2"
    for key in ("backspace", "1", "backspace", "2"):
        assert press(view, key, halfway.state) is None
    assert press(view, "enter", halfway.state) == Say(ev.PruneNode("n2", "pruned at the terminal"))
    assert view.asking is None


def test_x_can_be_taken_back_and_refuses_unknown_nodes(halfway: Run) -> None:
    view = View("n2")
    press(view, "x", halfway.state)
    assert press(view, "escape", halfway.state) is None
    assert view.message == "nothing was pruned"
    press(view, "x", halfway.state)
    press(view, "9", halfway.state)
    assert press(view, "enter", halfway.state) is None
    assert "there is no node 'n29'" in view.message


def test_an_exported_run_takes_no_commands(ended: Run) -> None:
    view = View(viewing=True)
    assert press(view, "p", ended.state) is None
    assert view.message == "this run is open for viewing only"
    assert press(view, "x", ended.state) is None
    assert view.asking is None
    assert press(view, "q", ended.state) == Quit()


def test_enter_reads_the_node_under_the_cursor(ended: Run) -> None:
    assert press(View("n1"), "enter", ended.state) == Read("n1")
    assert press(View("n1"), "l", ended.state) == Read("n1", log=True)


# --- pages ---------------------------------------------------------------------------------------------------------


def solved_child(run: Run) -> str:
    tree = run.state.tree
    return next(n.id for n in tree.values() if n.program_id and n.parent_id and tree[n.parent_id].program_id)


def test_enter_shows_the_diff_against_the_parents_program(ended: Run) -> None:
    node = ended.state.tree[solved_child(ended)]
    text = page(ended, node.id, log=False, width=80)
    parent = ended.state.tree[node.parent_id]
    assert f"against program {parent.program_id[:12]} of {parent.id}" in text
    added = next(iter(ended.program(node.program_id).sources.values())).splitlines()[0]
    assert f"+{added}" in text
    assert "--- parent/kernel.cpp" in text


def test_l_shows_verdict_log_and_story(ended: Run) -> None:
    text = page(ended, solved_child(ended), log=True, width=80)
    assert text.startswith("last of ")
    assert "predicted" in text


def test_a_node_without_a_program_shows_its_story(ended: Run) -> None:
    node = next(n.id for n in ended.state.tree.values() if n.status is NodeStatus.OPEN)
    assert "no program of this node has been measured yet" in page(ended, node, log=False, width=80)


def test_pages_hold_nothing_that_drives_a_terminal(ended: Run) -> None:
    for node_id in ended.state.tree:
        for log in (False, True):
            text = page(ended, node_id, log=log, width=80)
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert len(text) <= MAX_TEXT


def test_a_diff_shows_hidden_characters_as_codes() -> None:
    before, after = (Program({"k.cpp": text}, "k.cpp::run", "cpp") for text in ("a\n", "a\n\x1b]0;x\x07\u202e\n"))
    assert "+\\u001b]0;x\\u0007\\u202e" in difference(before, after)


def test_a_missing_pager_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "/no/such/pager -x")
    assert "the pager /no/such/pager cannot be run: No such file or directory" in show("text")


def test_the_pager_gets_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'got'}")
    assert show("what is shown\ud800") == ""
    assert (tmp_path / "got").read_text() == "what is shown?"


def test_a_state_without_anything_is_drawn() -> None:
    assert picture("r", State(), View(), 0.0, 80, 24)
