"""export, import and compare at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksearch.store import open_store
from tests.cli.shell import Shell, shell_in
from tests.web.sample import finished


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("runs")
    with open_store(folder / "runs.db") as store:
        finished(store, "one", 16, seed=3)
        finished(store, "two", 12, seed=5)
    return shell_in(folder)


def test_a_run_goes_out_and_comes_back_the_same(shell: Shell) -> None:
    assert "one.jsonl: run one, " in shell("export", "one")
    assert "run one is in the store" in shell("import", "one.jsonl", "--store", "other.db")
    here, there = (shell("show", "one", "--events", "--json", *more) for more in ((), ("--store", "other.db")))
    assert here == there
    first = (shell.folder / "one.jsonl").read_bytes()
    shell("export", "one", "-o", "again.jsonl", "--store", "other.db")
    assert (shell.folder / "again.jsonl").read_bytes() == first


def test_export_says_in_json_what_it_wrote(shell: Shell) -> None:
    found = shell.json("export", "two", "-o", "two.jsonl")
    assert found["run"] == "two"
    assert found["bytes"] == (shell.folder / "two.jsonl").stat().st_size


def test_an_exported_file_can_be_exported_as_a_page(shell: Shell) -> None:
    shell("export", "one", "-o", "sub/one.jsonl", code=3)  # no folder is made for a run that may be elsewhere
    shell("export", "one")
    shell("export", "one.jsonl", "--html", "-o", "pages/one.html")
    text = (shell.folder / "pages/one.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")


def test_importing_twice_changes_nothing_and_says_so(shell: Shell) -> None:
    shell("export", "one")
    assert "one" in shell.fails("import", "one.jsonl", code=3)


def test_a_damaged_file_is_named_with_its_line(shell: Shell) -> None:
    shell("export", "one")
    lines = (shell.folder / "one.jsonl").read_text().splitlines()
    (shell.folder / "cut.jsonl").write_text("\n".join(lines[:9]) + "\n")
    assert "was cut short" in shell.fails("import", "cut.jsonl", "--store", "third.db", code=3)


def test_a_wrong_ending_is_refused_with_the_cure(shell: Shell) -> None:
    assert "--html" in shell.fails("export", "one", "-o", "one.txt", code=2)


# --- compare -------------------------------------------------------------------------------------------------------


def test_compare_shows_best_staircase_verdicts_cost_and_workloads(shell: Shell) -> None:
    text = shell("compare", "one", "two")
    for word in ("best speedup", "second / first", "money", "best speedup after so many evaluations", "verdict",
                 "best, by workload", "rows=2048,cols=2048", "AMD EPYC 7763"):  # fmt: skip
        assert word in text
    assert max(map(len, text.splitlines())) <= 120


def test_compare_in_json_agrees_with_status(shell: Shell) -> None:
    shell("export", "two", "-o", "two.jsonl")
    found = shell.json("compare", "one", "two.jsonl")
    one, two = found["runs"]
    status = shell.json("status", "one")
    assert one["best"] == status["best"]
    assert one["speedup"] == status["speedup"]
    assert (one["evaluations"], one["tokens"]) == (status["evaluations"], status["tokens"])
    assert sum(one["verdicts"].values()) == one["attempts"]
    assert one["staircase"][-1]["speedup"] == one["speedup"]["value"]
    ratio = found["second_over_first"]
    assert ratio["value"] == pytest.approx(two["speedup"]["value"] / one["speedup"]["value"])
    assert ratio["low"] < ratio["value"] < ratio["high"]
    assert found["not_comparable"] is None
    assert found["workloads"][0]["name"] == "rows=1,cols=4096"


def changed(shell: Shell, name: str, before: str, after: str) -> str:
    """A copy of run `one` in which the log says something else: written anew, so that its hashes hold."""
    with open_store(shell.folder / "runs.db", readonly=True) as store, open_store(shell.folder / f"{name}.db") as other:
        info = store.run("one")
        other.create_run(name, info.meta)
        bodies = [json.loads(json.dumps(e.body).replace(before, after)) for e in store.read("one")]
        other.append(name, 0, bodies)
    shell("export", name, "--store", f"{name}.db", "-o", f"{name}.jsonl")
    return f"{name}.jsonl"


def test_times_of_different_devices_are_not_compared(shell: Shell) -> None:
    file = changed(shell, "h200", "AMD EPYC 7763", "NVIDIA H200")
    said = shell.fails("compare", "one", file, code=2)
    assert "one was timed on AMD EPYC 7763" in said
    assert "timed on NVIDIA H200" in said
    assert "ksearch verify" in said
    text = shell("compare", "one", file, "--anyway")
    assert "no times are compared" in text
    assert "speedup" not in text.partition("\n")[2]
    assert "verdict" in text
    found = shell.json("compare", "one", file, "--anyway")
    assert "NVIDIA H200" in found["not_comparable"]
    assert "workloads" not in found
    assert "speedup" not in found["runs"][0]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"task": "softmax"', '"task": "gemm"', "times of different tasks"),
        ('"task": "softmax"', '"task": "softmax", "task_hash": "aaaa"', None),  # the other does not say: same name
    ],
)
def test_different_tasks_are_not_compared(shell: Shell, before: str, after: str, said: str | None) -> None:
    file = changed(shell, "task-" + ("other" if said else "hash"), before, after)
    if said:
        assert said in shell.fails("compare", "one", file, code=2)
    else:
        shell("compare", "one", file)


def test_versions_of_a_task_are_not_compared(shell: Shell) -> None:
    old, new = (changed(shell, f"v-{h}", '"task": "softmax"', f'"task": "softmax", "task_hash": "{h}"') for h in "ab")
    assert "different versions of task softmax (a and b)" in shell.fails("compare", old, new, code=2)


def test_a_run_without_a_program_can_be_compared(shell: Shell) -> None:
    shell("new", "--name", "empty", "--evaluations", "3", "--store", "e.db")
    shell("export", "empty", "--store", "e.db", "-o", "empty.jsonl")
    text = shell("compare", "empty.jsonl", "empty.jsonl")
    assert "best speedup  " in text


def test_an_unknown_run_is_one_message(shell: Shell) -> None:
    assert "nothing" in shell.fails("compare", "one", "nothing", code=3)
    assert "there is no such file" in shell.fails("compare", "one", str(Path("no.jsonl")), code=2)
