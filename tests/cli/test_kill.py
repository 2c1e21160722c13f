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


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_fifty_kills_lose_nothing(shell: Shell) -> None:
    kill(shell, 50)
