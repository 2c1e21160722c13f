"""Several writers of one run: each request goes to the one it names, also after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ksearch.config import load, recorded
from ksearch.drivers import drive
from ksearch.errors import BadInput, ConfigError
from ksearch.events import Asked, Event, Received
from ksearch.history import attempts_at
from ksearch.protocol import Kind
from ksearch.run import Run
from ksearch.service.beginning import begin, log_of
from ksearch.service.desks import staffed
from ksearch.store import Store, open_store
from tests.service.staffing import desk_of

PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Tile", "value": 0.9}]})
CODE = '```cpp\nextern "C" void run(const float* x, float* y, long rows, long cols) { /* %s %d */ }\n```\n'


def transcript(path: Path, role: str, *texts: str, **numbers: Any) -> str:
    lines = [{"role": role, "text": text, "model": path.stem, **numbers} for text in texts]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"transcript:{path}"


@pytest.fixture
def flags(tmp_path: Path) -> dict[str, Any]:
    ann, bob = tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"
    writers = [
        transcript(path, "writer", *(CODE % (path.stem, n) for n in range(6)), usd=usd, tokens_in=900, tokens_out=100)
        for path, usd in ((ann, 0.3), (bob, 0.1))
    ]
    planner = transcript(tmp_path / "plan.jsonl", "planner", PLAN, usd=0.2)
    return {"task": "softmax", "planner_model": planner, "writers": writers, "evaluations": 6, "stagnation": 7}


def search(run: Run) -> None:
    with desk_of(run) as desk:
        drive(run, desk)


def wrote(run: Run) -> list[tuple[str, str]]:
    """(writer that was asked, model that answered), by its name in the recording."""
    events = log_of(run)
    asked = {e.request.id: e.request for e in events if isinstance(e, Asked) and e.request.kind is Kind.WRITE}
    replies = [e for e in events if isinstance(e, Received) and e.request_id in asked]
    return [(Path(asked[e.request_id].writer).stem, e.model) for e in replies]


@pytest.fixture
def store(tmp_path: Path):
    with open_store(tmp_path / "runs.db") as store:
        yield store


def test_each_request_goes_to_the_writer_it_names_and_its_attempt_says_so(store: Store, flags: dict[str, Any]) -> None:
    run = begin(store, "a", load(flags, {}))
    search(run)
    assert wrote(run) == [("ann", "ann"), ("bob", "bob")] * 3
    assert [Path(a.writer).stem for a in attempts_at(log_of(run), "n1")] == ["ann", "bob"] * 3
    tallies = {Path(name).stem: tally for name, tally in run.state.writers.items()}
    assert round(tallies["ann"].usd, 3) == 0.9
    assert round(tallies["bob"].usd, 3) == 0.3


def test_a_resumed_run_goes_on_where_each_writer_stopped(store: Store, flags: dict[str, Any]) -> None:
    run, replies = begin(store, "a", load(flags, {})), 0

    def stop(event: Event, _: object) -> None:
        nonlocal replies
        replies += isinstance(event, Received)
        if replies == 4:  # the plan and three programs, the last one not read yet
            raise KeyboardInterrupt

    run.watchers.append(stop)
    with pytest.raises(KeyboardInterrupt):
        search(run)
    again = Run(store, "a")
    search(again)
    assert wrote(again) == [("ann", "ann"), ("bob", "bob")] * 3
    assert len({p for e in log_of(again) if (p := getattr(e, "program_id", None))}) == 6


def test_settings_name_writers_by_file_environment_and_flag(tmp_path: Path) -> None:
    file = tmp_path / "ksearch.toml"
    file.write_text(
        'writers = ["a:1", "b:2"]\nwriter_choice = "bandit"\nprices = {"a:1" = [0, 0], "b:2" = [1, 2.5, 0.1]}\n'
    )
    found = load({}, {}, file).config
    assert (found.search.writers, found.search.bandit) == (("a:1", "b:2"), True)
    assert found.prices == {"a:1": (0, 0), "b:2": (1, 2.5, 0.1)}
    assert load({}, {"KSEARCH_WRITERS": "a:1, c:3"}).config.writers == ("a:1", "c:3")
    assert load({}, {"KSEARCH_WRITERS": '["command:x a,b"]'}).config.all_writers == ("command:x a,b",)
    loaded = load({"writers": ["d:4", "e:5"]}, {}, file)
    assert (loaded.config.writers, loaded.origins["writers"]) == (("d:4", "e:5"), "flag --writer")
    back = recorded(loaded.context())
    assert back
    assert back.config == loaded.config
    assert load({"writers": ["d:4"]}, {}).config.search.writers == ()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"writers": ["a:1"], "writer_model": "b:2"}, "both say who writes"),
        ({"writer_choice": "best"}, "flag --writer-choice: writer_choice = 'best' cannot be used"),
        ({"prices": {"a:1": [1]}}, "prices = .* cannot be used"),
        ({"writers": ["a:1", "a:1"]}, "each writer is named once"),
    ],
)
def test_settings_that_contradict_are_refused(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load(flags, {})


def test_an_agent_is_not_one_of_several_writers() -> None:
    with (
        pytest.raises(BadInput, match="agent cannot be one of several writers"),
        staffed(load({"task": "softmax", "writers": ["agent", "command:cat"]}, {}).config, None),
    ):
        pass
