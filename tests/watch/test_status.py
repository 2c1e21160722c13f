"""`ksearch status --json`: the keys that scripts rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksearch.cli.standing import status_json
from ksearch.run import Run
from tests.watch.test_picture import ended, halfway

__all__ = ["ended", "halfway"]
DOCS = Path(__file__).parent.parent.parent / "docs" / "watch.md"


def test_a_search_at_work_says_who_does_what(halfway: Run) -> None:
    found = status_json(halfway, halfway.state.last_at + 5, lambda _: False)
    (request,) = found["requests"]
    assert found["at_work"] is True
    assert request["holder"] == "loop"
    assert request["deadline"] == pytest.approx(request["since"] + 600)
    assert found["status"] == "unfinished"
    (cycle,) = found["cycles"]
    assert cycle["without_gain"] <= cycle["attempts"]
    assert found["last_event_at"] == halfway.state.last_at
    assert sum(found["tree"].values()) == len(halfway.state.tree) - 1


def test_nobody_is_at_work_when_the_holder_is_gone_or_late(halfway: Run) -> None:
    at = halfway.state.last_at
    gone = status_json(halfway, at, lambda _: True)
    assert gone["at_work"] is False
    assert gone["requests"][0]["holder_gone"] is True
    assert status_json(halfway, at + 601, lambda _: False)["at_work"] is False


def test_an_ended_run_names_its_best(ended: Run) -> None:
    found = status_json(ended, 0.0)
    assert found["ended"] == "budget: evaluations"
    assert found["best"] == ended.state.best_id
    assert ended.state.tree[found["best_node"]].program_id == found["best"]
    assert found["requests"] == found["cycles"] == []
    json.dumps(found, allow_nan=False)


def test_each_key_is_documented(ended: Run, halfway: Run) -> None:
    text = DOCS.read_text(encoding="utf-8")
    found = status_json(halfway, 0.0)
    keys = [*found, *found["requests"][0], *found["cycles"][0], *found["tree"]]
    assert [key for key in keys if f"`{key}`" not in text] == []
