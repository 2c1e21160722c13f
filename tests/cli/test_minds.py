"""Models that fail in every way, behind the real prompts and parsers: the run pauses or goes on, nothing is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ksearch import config
from ksearch.drivers import Desk, drive
from ksearch.models import open_model
from ksearch.protocol import Done, Kind, Wait
from ksearch.run import Run
from ksearch.service import beginning
from ksearch.service.minds import ModelMind
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator

PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Tile", "value": 0.9}]})
CODE = '```cpp\nextern "C" void run(const float* x, float* y, long rows, long cols) { /* %d */ }\n```\n'


@pytest.fixture
def store(tmp_path: Path):
    with open_store(tmp_path / "runs.db") as store:
        yield store


def searched(store: Store, model: str, evaluations: int = 2) -> tuple[Run, Done | Wait]:
    loaded = config.load({"task": "softmax", "model": model, "evaluations": evaluations, "stagnation": 5}, {})
    run = beginning.begin(store, "a", loaded)
    at, opened = beginning.setting(run.state), open_model(model)
    desk = Desk(ModelMind(opened, run, at), ModelMind(opened, run, at), FakeEvaluator())
    return run, drive(run, desk)


def transcript(folder: Path, *replies: tuple[str, str], finish: str | None = None) -> str:
    lines = [json.dumps({"role": role, "text": text, "finish": finish}) + "\n" for role, text in replies]
    (folder / "t.jsonl").write_text("".join(lines))
    return f"transcript:{folder / 't.jsonl'}"


def test_model_that_is_down_pauses_the_run_and_nothing_counts_as_an_attempt(store: Store) -> None:
    run, ended = searched(store, f"command:{sys.executable} -c 'raise SystemExit(3)'")
    assert ended.why.startswith(("paused", "the planner", "planner_failed")) or run.state.exhausted
    assert (run.state.attempts, run.state.evaluated) == (0, 0)


@pytest.mark.parametrize(
    "reply",
    ["", "I cannot help with that.", "Voilà le noyau : tuiler puis vectoriser.", "x" * 5_000_000, '{"edits": ['],
    ids=["empty", "refuses", "other language", "floods 5 MB", "cut off"],
)
def test_useless_plans_end_the_run_with_the_reason_and_are_all_kept(store: Store, tmp_path: Path, reply: str) -> None:
    run, ended = searched(store, transcript(tmp_path, *[("planner", reply)] * 8))
    assert isinstance(ended, Done)
    kept = [e for e in beginning.log_of(run) if type(e).__name__ == "Received"]
    assert len(kept) >= 4
    assert store.get_blob(kept[0].raw) == reply.encode()
    reasons = [e.reason for e in beginning.log_of(run) if type(e).__name__ == "PlanRefused"]
    assert len(reasons) == len(kept)
    assert all(0 < len(reason) < 1000 for reason in reasons)


def test_reply_that_hit_its_limit_is_a_failed_attempt_and_the_search_goes_on(store: Store, tmp_path: Path) -> None:
    texts = [json.dumps({"role": "planner", "text": PLAN})]
    cut = {"role": "writer", "text": CODE % 0, "finish": "length"}
    texts += [json.dumps(cut), *(json.dumps({"role": "writer", "text": CODE % n}) for n in (1, 2))]
    (tmp_path / "t.jsonl").write_text("\n".join(texts) + "\n")
    run, ended = searched(store, f"transcript:{tmp_path / 't.jsonl'}")
    assert ended == Done("budget: evaluations")
    assert (run.state.evaluated, run.state.attempts) == (2, 3)


def test_prompts_are_recorded_and_ask_what_the_task_wants(store: Store, tmp_path: Path) -> None:
    run, _ = searched(store, transcript(tmp_path, ("planner", PLAN), ("writer", CODE % 1), ("writer", CODE % 2)))
    leased = {e.request_id: e.prompt for e in beginning.log_of(run) if type(e).__name__ == "Leased" and e.prompt}
    kinds = {e.request.id: e.request.kind for e in beginning.log_of(run) if type(e).__name__ == "Asked"}
    prompts = {kinds[id]: json.loads(store.get_blob(sha)) for id, sha in leased.items()}
    assert "softmax" in prompts[Kind.PLAN]["text"]
    assert "Tile" in prompts[Kind.WRITE]["text"]
    assert run.state.spent.tokens > 1000
    assert run.state.unpriced == 3  # a transcript without a price is unknown, not free
