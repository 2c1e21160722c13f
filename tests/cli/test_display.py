"""The picture on a terminal fits it, however large the tree grows, and keeps what is being worked on in view."""

from __future__ import annotations

from collections import deque

import pytest

from ksearch import events as ev
from ksearch.cli.display import Lines, around, screen
from ksearch.drivers import drive
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.state import State
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk


@pytest.fixture(scope="module")
def states() -> list[State]:
    """Every state of a search that grows more nodes than a terminal has lines."""
    seen: list[State] = []
    with open_store(":memory:") as store:
        run = Run.create(store, "a", SearchConfig(Budget(40), stagnation=1))
        run.watchers.append(lambda _, state: seen.append(state))
        drive(run, fake_desk())
    assert len(seen[-1].tree) > 30
    return seen


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 16)])
def test_picture_fits_the_terminal(states: list[State], width: int, height: int) -> None:
    last = deque(["x" * 200] * 5, maxlen=5)
    for state in states:
        lines = screen(state, last, width, height)
        assert len(lines) < height
        assert all(len(line) <= width for line in lines)


def test_node_being_worked_on_stays_in_view_and_the_rest_is_counted(states: list[State]) -> None:
    shown = [screen(state, deque(), 80, 20) for state in states if state.cycles]
    assert shown
    assert all(any(line.lstrip("│├└─ |`-").startswith(("◐", "@")) for line in lines) for lines in shown)
    tree = ["head", *(f"line {n}" for n in range(50)), "", "legend"]
    assert around(tree, 10)[-1] == "(42 more lines: ksearch show)"
    assert around(tree[:5], 10) == tree[:5]


def test_what_is_odd_about_replies_is_told_once_also_by_several_runs() -> None:
    told: set[str] = set()
    one, two = Lines(told), Lines(told)
    plain, odd = ev.Received(request_id="r0", raw="00"), ev.Received(request_id="r1", raw="00", notes=("no schema",))
    assert one(plain, State()) == ""
    assert one(odd, State()).endswith("; no schema")
    assert one.bare(odd, State()) == two.bare(odd, State()) == ""
    assert "r2 answered" in two.bare(ev.Received(request_id="r2", raw="00", notes=("no schema", "no limit")), State())
