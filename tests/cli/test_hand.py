"""A search by hand through `ask` and `tell`, and what is refused on the way."""

from __future__ import annotations

import json
import time
from typing import Any

from ksearch.run import Run
from ksearch.store import open_store
from tests.cli.shell import Shell

PLAN = json.dumps(
    {
        "assessment": "two ideas",
        "edits": [
            {"op": "insert", "name": "a", "parent": "root", "title": "Tile", "value": 0.9, "predicted_speedup": 1.5},
            {"op": "insert", "parent": "a", "title": "Vectorise", "value": 0.8},
        ],
    }
)


def code(number: int) -> str:
    return f'```cpp\nextern "C" void run(const float* x, float* y) {{ y[0] = x[0] * {number}; }}\n```\n'


def evaluation(program: str, speedup: float, against: dict[str, Any] | None = None) -> str:
    ratio = {"value": speedup, "low": speedup * 0.99, "high": speedup * 1.01}
    body = {"program_id": program, "verdict": "passed", "latency_ms": 1 / speedup, "speedup": ratio}
    return json.dumps({**body, "against": against or {}})


def begun(shell: Shell, *args: str) -> None:
    """A run called `a` whose plan is told and whose first program is asked for (r1)."""
    shell("new", "--name", "a", *args)
    assert shell.json("ask")["kind"] == "plan"
    shell("tell", "r0", "-", stdin=PLAN)
    assert shell.json("ask")["id"] == "r1"


def test_search_by_hand_from_plan_to_best(shell: Shell) -> None:
    begun(shell, "--evaluations", "1")
    told = shell.json("tell", "a", "r1", "-", stdin=code(1))
    assert (told["outcome"], told["events"][0]["type"]) == ("taken", "written")
    asked = shell.json("ask", "--kind", "evaluate", "--as", "lab")
    assert (asked["id"], asked["kind"], asked["node_id"]) == ("r2", "evaluate", "n1")
    out = shell("tell", "r2", "-", stdin=evaluation(asked["program_id"], 1.5))
    assert "1.50x" in out
    assert "new best of the run" in out
    assert 'n1 "Tile" solved' in out
    assert "ended: budget: evaluations" in out
    assert shell.json("ask", "a", code=1) == {"run": "a", "state": "done", "why": "budget: evaluations", "until": None}
    shown = shell.json("show", "a")
    assert [n["status"] for n in shown["nodes"]] == ["solved", "solved", "open"]
    assert shown["best"] == asked["program_id"]
    assert "Tile" in shell("show", "a")
    assert "1.50" in shell("show", "a", "n1")
    assert "y[0] = x[0] * 1" in shell("show", "a", "--program", shown["best"][:8])
    assert shell.json("runs")["runs"][0]["speedup"] == 1.5


def test_refused_reply_is_kept_and_its_reason_asked_with_next(shell: Shell) -> None:
    shell("new", "--name", "a")
    shell("ask")
    out = shell("tell", "r0", "-", stdin="I cannot help with that.", code=1)
    assert "plan refused" in out
    bad = json.dumps({"edits": [{"op": "prune", "node": "root"}]})
    assert "only an open node can be pruned" in shell("tell", "r0", "-", stdin=bad, code=1)
    assert "only an open node can be pruned" in shell.json("ask")["prompt"]
    kept = [json.loads(line) for line in shell("show", "--events", "--json").splitlines()]
    assert [e["type"] for e in kept].count("received") == 2
    assert shell.json("tell", "r0", "-", stdin=PLAN)["outcome"] == "taken"


def test_answers_to_the_wrong_request_twice_late_and_of_the_wrong_kind(shell: Shell) -> None:
    begun(shell, "--evaluations", "2")
    assert "r9" in shell.fails("tell", "r9", "-", stdin=code(1), code=4)
    assert "asks for a write: this is an evaluation" in shell.fails(
        "tell", "r1", "-", stdin=evaluation("0" * 64, 1.5), code=4
    )
    shell("tell", "r1", "-", stdin=code(1))
    assert shell.json("tell", "r1", "-", stdin=code(2))["outcome"] == "duplicate"
    program = shell.json("ask", "--kind", "evaluate")["program_id"]
    for junk, says in (("{", "not JSON"), ("[]", "a JSON object"), ('{"program_id": 3}', "program_id")):
        assert says in shell.fails("tell", "r2", "-", stdin=junk, code=2)
    nan = evaluation(program, 1.5).replace("1.5,", "NaN,")
    assert "finite" in shell.fails("tell", "r2", "-", stdin=nan, code=2)
    assert "asks for program" in shell.fails("tell", "r2", "-", stdin=evaluation("0" * 64, 1.5), code=4)
    assert "lost" in shell("tell", "r2", "--lost", "the GPU is gone")
    assert shell.json("ask")["id"] == "r2"
    shell("tell", "r2", "-", stdin=evaluation(program, 0.9))
    assert shell.json("show")["evaluations"] == 1


def test_late_answer_is_taken_unless_another_came_first(shell: Shell) -> None:
    shell("new", "--name", "a")
    shell("ask", "--as", "slow", "--lease", "1")
    time.sleep(1.2)
    assert shell.json("ask", "--as", "quick")["id"] == "r0"
    assert shell.json("tell", "r0", "-", stdin=PLAN)["outcome"] == "taken"  # the slow one, after all
    assert shell.json("tell", "r0", "-", stdin='{"edits": []}')["outcome"] == "duplicate"


def test_what_people_say_is_recorded_with_its_author(shell: Shell) -> None:
    begun(shell, "--evaluations", "3")
    shell("command", "a", "add", "Use AVX2", "--parent", "root", "--value", "0.4", "--author", "alice")
    shell("command", "a", "pin", "n3")
    shell("command", "a", "boost", "n3", "0.7")
    shell("command", "a", "unpin", "n3")
    shell("command", "a", "note", "try wider tiles", "--node", "n1")
    shell("command", "a", "prune", "n2", "not now")
    shell("command", "a", "budget", "--evaluations", "5")
    shell("command", "a", "pause", "lunch")
    assert "lunch" in shell.json("ask", code=1)["why"]
    shell("command", "a", "resume")
    said = [json.loads(line) for line in shell("show", "--events", "--json").splitlines()]
    said = [e for e in said if e["type"] == "commanded"]
    assert said[0]["author"] == "alice"
    assert [e["command"]["type"] for e in said] == [
        "add_action", "pin", "boost", "pin", "note", "prune_node", "set_budget", "pause", "resume",
    ]  # fmt: skip
    assert shell.json("show")["nodes"][3]["value"] == 0.7
    assert "only an open node can be pinned" in shell.fails("command", "a", "pin", "n1", code=4)
    assert "no node" in shell.fails("show", "a", "n77", code=2)
    assert "value must be a finite number in [0, 1]" in shell.fails("command", "a", "boost", "n3", "7", code=4)
    shell("command", "a", "stop", "enough")
    shell("tell", "r1", "--lost", "stopped")
    assert "stopped: enough" in shell("runs")


def test_program_that_nobody_asked_for_is_measured_like_any_other(shell: Shell) -> None:
    begun(shell, "--evaluations", "4")
    (shell.folder / "k.cpp").write_text('extern "C" void run() {}\n')
    (shell.folder / "k.txt").write_text("void run() {}\n")
    assert "submitted program" in shell("submit", "a", "k.cpp", "--title", "mine", "--author", "bob")
    assert "waiting to be measured" in shell.fails("submit", "a", "k.cpp", code=4)
    assert "--language" in shell.fails("submit", "a", "k.txt", code=2)
    assert "cannot be read" in shell.fails("submit", "a", "absent.cpp", code=2)
    asked = shell.json("ask", "--kind", "evaluate")
    shell("tell", asked["id"], "-", stdin=evaluation(asked["program_id"], 2.5))
    node = next(n for n in shell.json("show")["nodes"] if n["origin"] == "submitted")
    assert (node["status"], node["action"]["title"]) == ("solved", "mine")
    shell("command", "a", "review", asked["program_id"][:10], "--accept", "--text", "looks right")
    assert "no measured program" in shell.fails("command", "a", "review", "ffff", "--accept", code=2)


def test_reply_that_was_stored_and_not_read_is_read_by_the_next_to_ask(shell: Shell) -> None:
    shell("new", "--name", "a")
    shell("ask", "--lease", "1")
    with open_store(shell.folder / "runs.db") as store:
        Run(store, "a").receive("r0", PLAN.encode())  # and here the shell was killed
    time.sleep(1.2)
    out, err = shell.both("ask")
    assert "the reply to r0 was stored and not read" in err
    assert out.startswith("r1 write at n1")


def test_unknown_price_of_a_model_behind_an_agent_is_not_free(shell: Shell) -> None:
    shell("new", "--name", "a")
    shell("ask")
    shell("tell", "r0", "-", "--model", "some-model", "--tokens", "900", stdin=PLAN)
    status = shell.json("status")
    assert (status["tokens"], status["unpriced_calls"]) == (900, 1)
