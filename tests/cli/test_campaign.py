"""`ksearch campaign` with stand-ins: the budget, the list, kills, and what goes wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ksearch.tasks import init_task
from tests.cli.shell import Shell
from tests.cli.test_run import WORKLOADS

FAKE = ("--model", "fake:7", "--no-lint", "--stagnation", "3")


@pytest.fixture
def listed(shell: Shell) -> str:
    (shell.folder / "tonight.txt").write_text("softmax\n\n# the second\ngemm\nrmsnorm_residual  # third\n")
    return "tonight.txt"


def accounts(summary: dict[str, Any]) -> list[tuple[Any, ...]]:
    """All that must not depend on how often a campaign was interrupted."""
    return [(t["task"], t["evaluations"], t["run"], t["speedup"], t["spent"]["tokens"]) for t in summary["tasks"]]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_campaign_spends_its_budget_over_all_tasks_and_sums_up(shell: Shell, listed: str) -> None:
    out, err = shell.both("campaign", listed, *FAKE, "--evaluations", "30", "--least", "4", "--share", "4")
    assert "campaign tonight: 3 tasks, 30 evaluations for all together; 4 evaluations for each first" in err
    assert "gemm: +4 evaluations (its first)" in out
    assert "over all: geometric mean" in out
    assert "3 of 3 tasks tried" in out
    summary = shell.json("campaign", listed, "--show")
    made = [t["evaluations"] for t in summary["tasks"]]
    assert sum(made) == 30
    assert min(made) >= 4
    assert [t["run"] for t in summary["tasks"]] == ["tonight.softmax", "tonight.gemm", "tonight.rmsnorm_residual"]
    assert summary["overall"]["spent"]["usd"] == pytest.approx(sum(t["spent"]["usd"] for t in summary["tasks"]))
    assert shell.json("status", "tonight.gemm")["evaluations"] == made[1]


def test_the_same_command_goes_on_and_more_budget_goes_further(shell: Shell, listed: str) -> None:
    first = shell.json("campaign", listed, *FAKE, "--evaluations", "12", "--least", "2", "--share", "2")
    again = shell.json("campaign", listed)
    assert accounts(again) == accounts(first)
    more = shell.json("campaign", listed, "--evaluations", "20")
    assert sum(t["evaluations"] for t in more["tasks"]) == 20
    assert more["why"] == "budget: evaluations"
    assert all(len(shell.json("show", t["run"], "--config")["config"]) > 20 for t in more["tasks"])


def test_parts_of_a_single_evaluation_measure_one_program_each(shell: Shell, listed: str) -> None:
    args = ("campaign", listed, *FAKE, "--evaluations", "5", "--least", "1", "--share", "1")
    assert [t["evaluations"] for t in shell.json(*args)["tasks"]] in ([2, 2, 1], [3, 1, 1])


def test_several_at_once_spend_no_more_than_the_budget_either(shell: Shell, listed: str) -> None:
    args = ("campaign", listed, *FAKE, "--evaluations", "31", "--least", "4", "--share", "4", "--parallel", "4")
    summary = shell.json(*args)
    assert sum(t["evaluations"] for t in summary["tasks"]) == 31
    assert min(t["evaluations"] for t in summary["tasks"]) >= 4


def test_a_task_that_ends_by_a_limit_of_its_own_is_over_and_the_campaign_goes_on(shell: Shell, listed: str) -> None:
    args = ("campaign", listed, *FAKE, "--evaluations", "60", "--least", "4", "--share", "4")
    shell(*args, KSEARCH_ATTEMPTS="9")
    summary = shell.json("campaign", listed)
    assert summary["why"] == "no task can use more of the budget"
    assert {t["status"] for t in summary["tasks"]} == {"budget: attempts"}
    assert all(0 < t["evaluations"] <= 9 for t in summary["tasks"])


def test_money_is_one_budget_for_all_and_is_never_overspent(shell: Shell, listed: str) -> None:
    reserve = {"KSEARCH_RESERVE_USD": "0.02"}
    out = shell("campaign", listed, *FAKE, "--evaluations", "300", "--usd", "0.5", "--least", "4", **reserve)
    assert "budget: usd" in out
    summary = shell.json("campaign", listed, "--show")
    assert 0.45 <= summary["overall"]["spent"]["usd"] <= 0.5
    more = shell.json("campaign", listed, "--usd", "0.8")
    assert 0.75 <= more["overall"]["spent"]["usd"] <= 0.8


@pytest.mark.slow
def test_kills_at_any_moment_change_no_account(shell: Shell, listed: str) -> None:
    args = ("campaign", listed, *FAKE, "--evaluations", "40", "--least", "5", "--share", "5", "--json")
    quiet = Shell(shell.folder, {**shell.env, "KSEARCH_STORE": str(shell.folder / "quiet.db")})
    expected = accounts(quiet.json(*args[:-1]))
    draw = random.Random(int(os.environ.get("KSEARCH_KILL_SEED", "1")))
    calls = shell.folder / "calls.txt"
    kills = 0
    for _ in range(4):
        driver = shell.start(*args, KSEARCH_FAKE_MS="5", KSEARCH_FAKE_CALLS=str(calls))
        enough = lines(calls) + draw.randint(3, 25)
        while driver.poll() is None and lines(calls) < enough:
            time.sleep(0.002)
        kills += driver.poll() is None
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    summary = shell.json(*args[:-1])
    assert [a[:4] for a in accounts(summary)] == [a[:4] for a in expected]
    measured = Counter(line for line in calls.read_text().splitlines() if line.endswith("evaluate"))
    assert sum(t["evaluations"] for t in summary["tasks"]) == 40
    assert measured.total() <= 40 + kills


def test_only_one_process_carries_a_campaign(shell: Shell, listed: str) -> None:
    args = ("campaign", listed, *FAKE, "--evaluations", "40", "--json")
    driver = shell.start(*args, KSEARCH_FAKE_MS="200")
    try:
        while not (shell.folder / "runs.db").exists() or not shell.json("runs")["runs"]:
            time.sleep(0.1)
        message = shell.fails("campaign", listed, code=2)
        assert f"is being carried on already, by process {driver.pid}" in message
    finally:
        driver.send_signal(signal.SIGINT)
        _, err = driver.communicate(timeout=30)
    assert driver.returncode == 130
    assert "The same command goes on" in err
    assert "goes on as it was begun" in shell.both(*args[:-1])[1]


def test_a_list_with_mistakes_begins_nothing_and_names_them_all(shell: Shell) -> None:
    def fails(text: str) -> str:
        (shell.folder / "list.txt").write_text(text)
        _, err = shell.both("campaign", "list.txt", *FAKE, code=2)
        assert err.startswith("error: ")
        return err

    assert "names no task" in fails("# nothing\n\n")
    err = fails("softmax\nsofmax\ngone/away\nsoftmax\n")
    assert "line 2: sofmax: no such task folder" in err
    assert "line 3: gone/away" in err
    assert "line 4: softmax is on line 1 already" in err
    (shell.folder / "empty").mkdir()
    assert "is no task folder" in fails("empty\n")
    assert "holds no task" in shell.fails("campaign", "empty", *FAKE, code=2)
    assert "no such folder or file" in shell.fails("campaign", "nowhere", *FAKE, code=2)
    init_task(shell.folder / "mine")
    assert "ksearch run --task mine" in shell.fails("campaign", "mine", *FAKE, code=2)
    (shell.folder / "list.txt").write_text("softmax\n")
    assert "answer by themselves" in shell.fails("campaign", "list.txt", code=2)
    assert "cannot name a campaign" in shell.fails("campaign", "list.txt", *FAKE, "--name", "a b", code=2)
    assert "allow" in shell.fails("campaign", "list.txt", *FAKE, "--usd", "0", code=2)
    assert shell.json("runs")["runs"] == []


def test_another_list_of_the_same_name_is_another_campaign(shell: Shell, listed: str) -> None:
    shell("campaign", listed, *FAKE, "--evaluations", "3", "--least", "1")
    (shell.folder / "moved").mkdir()
    (shell.folder / "moved" / listed).write_text("softmax\n")
    assert "choose another --name" in shell.fails("campaign", f"moved/{listed}", *FAKE, code=2)
    summary = shell.json("campaign", f"moved/{listed}", "--name", "tonight", "--evaluations", "4")
    assert [t["status"] for t in summary["tasks"]].count("not in the list") == 2
    assert sum(t["evaluations"] for t in summary["tasks"]) == 4


def test_a_run_of_that_name_which_is_not_of_the_campaign_is_left_alone(shell: Shell, listed: str) -> None:
    shell("new", "--name", "tonight.gemm", "--task", "gemm")
    assert "is of no campaign" in shell.fails("campaign", listed, *FAKE, code=2)


@pytest.mark.slow
def test_a_task_that_fails_lint_is_set_aside_when_its_turn_comes_and_the_rest_goes_on(shell: Shell) -> None:
    tasks = shell.folder / "tasks"
    for name in ("a", "b"):
        file = init_task(tasks / name).folder / "task.toml"
        text = file.read_text()
        file.write_text(text[: text.index("# What the kernel is wanted for")] + WORKLOADS)
    broken = tasks / "b" / "reference.py"
    broken.write_text(broken.read_text().replace("def reference", "def refrence"))
    args = ("campaign", "tasks", "--model", "fake:1", "--evaluations", "8", "--least", "2", "--share", "2")
    out, _ = shell.both(*args, code=1)
    assert "b is set aside: lint: task folder: " in out
    assert "1 of 2 tasks tried" in out
    broken.write_text(broken.read_text().replace("def refrence", "def reference"))
    summary = shell.json("campaign", "tasks", "--evaluations", "10")
    assert sum(t["evaluations"] for t in summary["tasks"]) == 10
    assert summary["tasks"][1]["evaluations"] == 2


def test_a_folder_that_was_changed_since_is_set_aside(shell: Shell) -> None:
    for name in ("a", "b"):
        init_task(shell.folder / "tasks" / name)
    shell("campaign", "tasks", *FAKE, "--evaluations", "4", "--least", "2")
    toml = shell.folder / "tasks" / "a" / "reference.py"
    toml.write_text(toml.read_text() + "\n# changed\n")
    out, _ = shell.both("campaign", "tasks", "--evaluations", "8", "--share", "2", code=1)
    assert "not as it was" in out
    assert sum(t["evaluations"] for t in shell.json("campaign", "tasks", "--show")["tasks"]) == 8


def test_tasks_are_looked_at_only_when_their_turn_comes(shell: Shell) -> None:
    init_task(shell.folder / "tasks" / "a-first")
    for n in range(300):
        folder = shell.folder / "tasks" / f"t{n:03}"
        folder.mkdir()
        (folder / "task.toml").write_text("this is no task")
    out, err = shell.both("campaign", "tasks", *FAKE, "--evaluations", "2", "--least", "1", code=1)
    assert "a-first: +1 evaluation (its first)" in out
    assert "enough for the first 2 tasks only" in err
    assert "300 tasks that wait" not in out.split("a-first: +1")[0]


def test_folders_of_one_name_are_told_apart_and_the_task_stands_for_itself_in_settings(
    shell: Shell, tmp_path: Path
) -> None:
    for place in ("x", "y"):
        init_task(shell.folder / place / "gate")
    (shell.folder / "list.txt").write_text("x/gate\ny/gate\n")
    summary = shell.json(
        "campaign", "list.txt", *FAKE, "--evaluations", "2", "--least", "1", "--record", "{task}.jsonl"
    )
    names = [t["task"] for t in summary["tasks"]]
    assert len(set(names)) == 2
    assert all(name.startswith("gate-") for name in names)
    found = shell.json("show", summary["tasks"][0]["run"], "--config")["config"]["record"]["value"]
    assert found == f"{names[0]}.jsonl"
