"""`kill -9` at any moment: what a resumed run has in its log is what an undisturbed one has.

KSEARCH_KILL_SEED chooses other moments.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from ksearch import events as ev
from ksearch.fold import fold
from ksearch.run import Run
from ksearch.store import open_store
from tests.cli.shell import Shell

SEED = int(os.environ.get("KSEARCH_KILL_SEED", "1"))


def story(place: Path, name: str) -> list[ev.Event]:
    """The log as far as it does not tell who was on duty and when."""
    with open_store(place, readonly=True) as store:
        events = Run(store, name).log()
    return [dataclasses.replace(e, at=0.0) for e in events if not isinstance(e, ev.Leased | ev.Expired)]


def killed(process: subprocess.Popen[str], moment_s: float) -> bool:
    """Let it get to work, wait, kill it; False if it was done before."""
    assert process.stdout
    process.stdout.readline()  # the first line of JSON: it has taken up work
    time.sleep(moment_s)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return running


def search(shell: Shell, number: int, kills: int, draw: random.Random) -> int:
    """One search, killed up to `kills` times and resumed each time; returns how often it was hit."""
    whole, cut = f"whole-{number}", f"cut-{number}"
    begin = ("--evaluations", "24", "--stagnation", "4", "--json")
    fake = {"KSEARCH_MODEL": f"fake:{number}"}
    shell("run", "--name", whole, *begin, **fake)
    calls = shell.folder / f"calls-{number}"
    noted = {"KSEARCH_FAKE_CALLS": str(calls), "KSEARCH_FAKE_MS": "3"}
    hits = int(killed(shell.start("run", "--name", cut, *begin, **fake, **noted), draw.uniform(0, 0.1)))
    while hits < kills and not ended(shell, cut):
        hits += killed(shell.start("resume", cut, "--json", **noted), draw.uniform(0, 0.1))
    shell("resume", cut, "--quiet", **noted)
    assert story(shell.folder / "runs.db", cut) == story(shell.folder / "runs.db", whole)
    check_calls(calls, story(shell.folder / "runs.db", whole), hits)
    return hits


def ended(shell: Shell, name: str) -> bool:
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        return Run(store, name).state.ended is not None


def check_calls(calls: Path, events: list[ev.Event], hits: int) -> None:
    """At most one call per kill was made twice, and none twice more than that: a stored reply is not asked again."""
    made = Counter(calls.read_text().splitlines())
    answered = sum(isinstance(e, ev.Received | ev.Evaluated) for e in events)
    assert len(made) == answered
    assert made.total() - len(made) <= hits


def kill(shell: Shell, kills: int) -> None:
    draw = random.Random(SEED)
    hits = number = 0
    while hits < kills:
        hits += search(shell, number, kills - hits, draw)
        number += 1


def test_killed_and_resumed_run_equals_the_undisturbed_one(shell: Shell) -> None:
    kill(shell, 6)


def search_at_once(shell: Shell, name: str, kills: int, draw: random.Random, at_once: int = 6) -> int:
    """One search with many at work, killed and resumed; returns how often it was hit."""
    calls = shell.folder / f"calls-{name}"
    noted = {"KSEARCH_FAKE_CALLS": str(calls), "KSEARCH_FAKE_MS": "20"}
    begin = ("--evaluations", "40", "--stagnation", "3", "--parallel", str(at_once), "--json")
    driver = shell.start("run", "--name", name, *begin, KSEARCH_MODEL=f"fake:{len(name)}", **noted)
    hits = int(killed(driver, draw.uniform(0, 0.3)))
    while hits < kills and not ended(shell, name):
        hits += killed(shell.start("resume", name, "--json", **noted), draw.uniform(0, 0.3))
    shell("resume", name, "--quiet", **noted)
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        run = Run(store, name)
        events = run.log()
    assert fold(events) == run.state
    assert (run.state.ended, run.state.evaluated) == ("budget: evaluations", 40)
    received = Counter(e.request_id for e in events if isinstance(e, ev.Received))
    measured = Counter(e.evaluation.program_id for e in events if isinstance(e, ev.Evaluated))
    assert set((received + measured).values()) == {1}
    made = Counter(calls.read_text().splitlines())
    assert len(made) == len(received) + len(measured)
    # only what was at work when it was hit: calls of models, and programs at the evaluator
    assert made.total() - len(made) <= hits * (at_once + 3)
    return hits


def test_killed_with_many_at_work_and_resumed_it_ends_with_the_same_accounting(shell: Shell) -> None:
    assert search_at_once(shell, "many", 2, random.Random(SEED)) > 0


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_ten_kills_with_many_at_work_lose_nothing(shell: Shell) -> None:
    draw, hits, number = random.Random(SEED), 0, 0
    while hits < 10:
        number += 1
        hits += search_at_once(shell, "m" * number, 10 - hits, draw, draw.randint(2, 9))


def test_the_paper_is_the_default_and_its_log_says_nothing_of_parallel_work(shell: Shell) -> None:
    shell("run", "--name", "a", "--evaluations", "6", KSEARCH_MODEL="fake:1")
    events = story(shell.folder / "runs.db", "a")
    assert not [e for e in events if isinstance(e, ev.Commanded)]
    shell("run", "--name", "b", "--evaluations", "6", "--parallel", "1", KSEARCH_MODEL="fake:1")
    assert story(shell.folder / "runs.db", "b")[1:] == events[1:]


def test_a_straight_run_goes_on_in_parallel_and_back(shell: Shell) -> None:
    shell("run", "--name", "a", "--evaluations", "4", KSEARCH_MODEL="fake:1")
    shell("command", "a", "budget", "--evaluations", "20")
    shell("resume", "a", "--parallel", "4", "--quiet")
    shell("command", "a", "budget", "--evaluations", "24")
    shell("resume", "a", "--quiet")
    said = [e.command for e in story(shell.folder / "runs.db", "a") if isinstance(e, ev.Commanded)]
    assert [c for c in said if isinstance(c, ev.SetParallel)] == [ev.SetParallel(3, 2), ev.SetParallel(1, 1)]
    shell("resume", "a", "--parallel", "auto", "--quiet")
    assert "'0' cannot be used" in shell.fails("run", "--parallel", "0", code=2)


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_fifty_kills_lose_nothing(shell: Shell) -> None:
    kill(shell, 50)
