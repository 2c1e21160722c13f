"""`ksearch cost`: tables for people, strict JSON for scripts, with and without prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ksearch.config import load
from ksearch.drivers import drive
from ksearch.run import Run
from ksearch.service.beginning import begin
from ksearch.store import open_store
from tests.cli.shell import Shell
from tests.service.staffing import desk_of

PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Tile", "value": 0.9}]})
CODE = '```cpp\nextern "C" void run(const float* x, float* y, long rows, long cols) { /* %s %d */ }\n```\n'


def searched(shell: Shell, writers: int = 1, **numbers: Any) -> Run:
    """A short search by transcripts that report these numbers with each reply."""
    specs = []
    for name in ("ann", "bob")[:writers]:
        lines = [{"role": "planner", "text": PLAN, "model": f"{name}-1", **numbers}]
        lines += [{"role": "writer", "text": CODE % (name, n), "model": f"{name}-1", **numbers} for n in range(9)]
        path = shell.folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        specs.append(f"transcript:{path}")
    flags = {"task": "softmax", "model": specs[0], "writers": specs if writers > 1 else None, "evaluations": 6}
    with open_store(Path(shell.env["KSEARCH_STORE"])) as store:
        run = begin(store, "a", load(flags, {}))
        with desk_of(run) as desk:
            drive(run, desk)
        return run


def test_cost_tells_money_by_role_model_and_action_and_for_each_doubling(shell: Shell) -> None:
    run = searched(shell, usd=0.25, tokens_in=1000, tokens_out=200, tokens_cached=750)
    out = shell("cost", "a")
    assert "spent   1.75 USD, 8,400 tokens, 7 replies" in out
    assert "cached  75% of the prompts' tokens (7 of 7 replies tell)" in out
    assert "for each doubling" in out
    assert "n1 Tile" in out
    told = shell.json("cost", "a")
    best = run.state.evaluations[run.state.best_id or ""].speedup
    assert best
    assert told["speedup"] == best.value
    assert {name: (b["replies"], b["usd"]) for name, b in told["roles"].items()} == {
        "planner": (1, 0.25),
        "writer": (6, 1.5),
    }
    assert told["models"]["ann-1"]["per_doubling_usd"] > 0
    assert told["actions"][0]["evaluations"] == 6
    assert "75% of the prompts from a cache" in " ".join(shell("status", "a").split())
    assert shell.json("status", "a")["cached_tokens"] == 5250


def test_cost_of_several_writers_is_told_for_each(shell: Shell) -> None:
    searched(shell, writers=2, usd=0.25, tokens_in=1000, tokens_out=200)
    told = shell.json("cost", "a")
    assert {Path(name).stem: b["replies"] for name, b in told["writers"].items()} == {"ann": 3, "bob": 3}
    assert "writer " in shell("cost", "a")
    assert "bob-1" in shell("show", "a", "n1")
    tried = shell.json("show", "a", "n1")["tried"]
    assert [Path(t["writer"]).stem for t in tried] == ["ann", "bob"] * 3


def test_cost_without_prices_is_told_in_tokens_and_says_so(shell: Shell) -> None:
    searched(shell, tokens_in=1000, tokens_out=200)
    out = shell("cost", "a")
    assert "spent   an unknown amount of money, 8,400 tokens, 7 replies" in out
    assert "No price is known, so all is told in tokens" in out
    assert "cached  unknown" in out
    assert "USD for" not in out
    told = shell.json("cost", "a")
    assert told["total"]["usd"] is None
    assert told["total"]["per_doubling_tokens"] > 0


def test_cost_of_a_run_that_called_nobody(shell: Shell) -> None:
    shell("new", "--name", "a", "--evaluations", "3")
    assert "spent   nothing" in shell("cost", "a")
