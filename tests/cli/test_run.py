"""`ksearch run` with real measurements: a small task, a recorded model, an agent beside the evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksearch.tasks import init_task
from tests.cli.shell import Shell

PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Plain loops", "value": 0.9}]})
WORKLOADS = """
[[workloads]]
name = "small"
axes = { rows = 32, cols = 512 }
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The template's task with one small workload."""
    folder = init_task(tmp_path / "gate").folder
    file = folder / "task.toml"
    text = file.read_text()
    file.write_text(text[: text.index("# What the kernel is wanted for")] + WORKLOADS)
    return folder


def program(task: Path, remark: str) -> str:
    return f"```cpp\n{(task / 'baseline.cpp').read_text()}// {remark}\n```\n"


def recorded(task: Path) -> Path:
    broken = program(task, "broken").replace("largest = 0.0f", "largest = nobody")
    replies = [
        ("planner", PLAN),
        ("writer", program(task, "one")),
        ("writer", broken),
        ("writer", program(task, "two")),
    ]
    path = task.parent / "t.jsonl"
    path.write_text("".join(json.dumps({"role": role, "text": text}) + "\n" for role, text in replies))
    return path


@pytest.mark.slow
def test_recorded_model_searches_and_the_best_program_comes_out_as_files(shell: Shell, task: Path) -> None:
    model = f"transcript:{recorded(task)}"
    out, err = shell.both("run", "--task", str(task), "--model", model, "--evaluations", "3", "--name", "a")
    assert "budget: 3 evaluations, at most 9 attempts" in err
    assert "compile_error" in out
    assert "ended: budget: evaluations" in out
    assert shell.json("status", "a")["evaluations"] == 3
    files = shell.json("best", "a", "-o", "out")["files"]
    assert {Path(name).name for name in files} >= {"program.json", "evaluation.json", "origin.json"}
    assert json.loads((shell.folder / "out" / "evaluation.json").read_text())["verdict"] == "passed"
    assert "void run" in shell("best", "a")
    (task / "reference.py").write_text((task / "reference.py").read_text() + "\n# changed\n")
    assert "not as it was" in shell.fails("ask", "a", code=2)


@pytest.mark.slow
def test_agent_answers_by_tell_and_resume_measures(shell: Shell, task: Path) -> None:
    out, err = shell.both("run", "--task", str(task), "--evaluations", "1", "--name", "a")
    assert "plan is wanted" in out
    assert "ksearch ask a" in err
    asked = shell.json("ask")
    assert "Gated activation" in asked["prompt"]
    shell("tell", "r0", "-", stdin=PLAN, code=0)
    assert "Plain loops" in shell.json("ask")["prompt"]
    shell("tell", "r1", "-", stdin=program(task, "mine"))
    assert "passed" in shell("resume")
    assert shell.json("status", "a")["speedup"]["value"] > 0


def test_search_that_cannot_begin_says_why_and_begins_nothing(shell: Shell, task: Path) -> None:
    run = ("run", "--task", str(task), "--evaluations", "1")
    assert "allows no attempt" in shell.fails(*run[:-1], "0", code=2)
    assert "does not allow one model call" in shell.fails(*run, "--model", "command:cat", "--tokens", "5000", code=2)
    assert "Raise --usd" in shell.fails(*run, "--usd", "0", code=2)
    assert "cannot hold command:cat" in shell.fails(*run, "--model", "command:cat", "--usd", "1", code=2)
    assert "add --model openai:NAME" in shell.fails(*run, "--base-url", "http://localhost:8000/v1", code=2)
    assert "OPENAI_API_KEY" in shell.fails(*run, "--model", "openai:gpt-5", code=5)
    assert "names no model" in shell.fails(*run, "--model", "nonsense", code=5)
    assert "needs a task" in shell.fails("run", "--model", "command:cat", code=2)
    assert "none of them" in shell.fails("new", "--task", str(task), "--language", "cuda", code=2)
    assert "no bundled task" in shell.fails("run", "--task", "sofmax", code=2)
    baseline = task / "baseline.cpp"
    baseline.write_text(baseline.read_text().replace("largest = 0.0f", "largest = nobody"))
    assert "does not build" in shell.fails(*run, "--model", "command:cat", code=6)
    assert shell.json("runs")["runs"] == []


def test_best_before_anything_passed_is_code_one(shell: Shell) -> None:
    shell("new", "--name", "a")
    assert "no program has passed" in shell.both("best", "a", code=1)[1]
    assert "0 of 120 evaluations" in shell("status")


def test_a_model_that_stays_down_is_code_one_and_resume_asks_it_again(shell: Shell, task: Path) -> None:
    down = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--evaluations", "2")
    names = {"MODEL_TRIES": "1", "OUTAGE_FAILURES": "1", "OUTAGE_SECONDS": "0.1", "OUTAGE_HOURS": "0.00001"}
    hasty = {f"KSEARCH_{name}": value for name, value in names.items()}
    out, err = shell.both("run", "--name", "down", "--task", str(task), *down, code=1, **hasty)
    assert "cannot be reached" in out
    assert "when the cause is mended: ksearch resume down" in err
    again, _ = shell.both("resume", "down", code=1)
    assert "cannot be reached" in again
