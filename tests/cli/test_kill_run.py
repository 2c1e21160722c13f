"""`kill -9` of a real `ksearch run`: recorded replies, real builds and measurements. Minutes long.

KSEARCH_KILL_SEED chooses other moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from ksearch import events as ev
from ksearch.run import Run
from ksearch.store import open_store
from ksearch.types import Program
from tests.cli.shell import Shell
from tests.cli.test_run import PLAN, program, recorded, task

__all__ = ["task"]
KILLS = 20


def many(task: Path) -> Path:
    path = recorded(task)
    replies = [("planner", PLAN), *(("writer", program(task, str(n))) for n in range(60))]
    path.write_text("".join(json.dumps({"role": role, "text": text}) + "\n" for role, text in replies))
    return path


@pytest.mark.heavy
@pytest.mark.timeout(1500)
def test_twenty_kills_of_a_real_search_lose_no_reply_and_no_measurement(shell: Shell, task: Path) -> None:
    draw = random.Random(int(os.environ.get("KSEARCH_KILL_SEED", "1")))
    settings = {"KSEARCH_MODEL": f"transcript:{many(task)}", "KSEARCH_RECORD": str(shell.folder / "calls.jsonl")}
    shell("new", "--name", "a", "--task", str(task), "--evaluations", "60", "--stagnation", "60", **settings)
    finished: set[str] = set()
    hits = 0
    while hits < KILLS and not (state := look(shell)).ended:
        finished |= set(state.evaluations)
        driver = shell.start("resume", "a", "--json")
        time.sleep(draw.uniform(0.5, 6))
        hits += driver.poll() is None
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        assert finished <= set(look(shell).evaluations)
    shell("command", "a", "budget", "--evaluations", str(look(shell).evaluated + 2))
    shell("resume", "a", "--quiet")
    events = log(shell)
    received = Counter(e.request_id for e in events if isinstance(e, ev.Received))
    assert set(received.values()) == {1}
    measured = Counter(e.evaluation.program_id for e in events if isinstance(e, ev.Evaluated))
    assert set(measured.values()) == {1}
    calls = len((shell.folder / "calls.jsonl").read_text().splitlines())
    assert received.total() <= calls <= received.total() + hits
    assert hits == KILLS


def look(shell: Shell):
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        return Run(store, "a").state


def log(shell: Shell) -> list[ev.Event]:
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        run = Run(store, "a")
        events = run.log()
        programs = [e.program_id for e in events if isinstance(e, ev.Written)]
        assert all(isinstance(run.program(id), Program) for id in programs)
        return events
