"""A campaign over the five bundled CPU tasks: recorded replies, real builds and measurements, killed and resumed."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from ksearch import events as ev
from ksearch.run import Run
from ksearch.store import open_store
from ksearch.tasks import bundled_tasks, load_task
from tests.cli.shell import Shell
from tests.cli.test_run import PLAN

FIVE = tuple(name for name in bundled_tasks() if load_task(name).spec.device == "cpu")
EVALUATIONS = 6  # one for each task, and one more for the one that gained most


def replies(folder: Path) -> None:
    """What a model would say: the task's own good program where there is one, then the baseline with a remark."""
    folder.mkdir()
    for name in FIVE:
        task = load_task(name)
        good = [p for p in task.strong.values() if p.language == task.baseline.language]
        texts = [text for p in good for text in p.sources.values()]
        (text,) = task.baseline.sources.values()
        comment = {"python": "#"}.get(task.baseline.language, "//")
        texts += [f"{text}\n{comment} {n}\n" for n in range(4)]
        written = [{"role": "writer", "text": f"```{task.baseline.language}\n{text}```\n"} for text in texts]
        lines = [{"role": "planner", "text": PLAN}, *written]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def logs(shell: Shell) -> dict[str, list[ev.Event]]:
    with open_store(shell.folder / "runs.db", readonly=True) as store:
        return {info.id: Run(store, info.id).log() for info in store.runs()}


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_five_tasks_by_transcript_killed_and_resumed_with_the_same_accounts(shell: Shell) -> None:
    assert len(FIVE) == 5
    replies(shell.folder / "replies")
    (shell.folder / "five.txt").write_text("\n".join(FIVE))
    model = ("--model", "transcript:replies/{task}.jsonl", "--no-lint")
    args = ("campaign", "five.txt", *model, "--evaluations", str(EVALUATIONS), "--least", "1", "--share", "1")
    driver = shell.start(*args)
    while driver.poll() is None and sum(isinstance(e, ev.Evaluated) for e in all_events(shell)) < 2:
        time.sleep(0.2)
    assert driver.poll() is None
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    before = {e.evaluation.program_id for e in all_events(shell) if isinstance(e, ev.Evaluated)}
    summary = shell.json("campaign", "five.txt")
    events = all_events(shell)
    measured = Counter(e.evaluation.program_id for e in events if isinstance(e, ev.Evaluated))
    assert before <= set(measured)
    assert sum(t["evaluations"] for t in summary["tasks"]) == measured.total() == EVALUATIONS
    assert set(measured.values()) == {1}
    for log in logs(shell).values():
        received = Counter(e.request_id for e in log if isinstance(e, ev.Received))
        assert set(received.values()) == {1}
    assert [t["task"] for t in summary["tasks"]] == list(FIVE)
    softmax = next(t for t in summary["tasks"] if t["task"] == "softmax")
    assert [t["evaluations"] for t in summary["tasks"]] == [2 if t is softmax else 1 for t in summary["tasks"]]
    assert softmax["speedup"]["low"] > 1  # its strong program
    assert 0 < softmax["of_floor"] < 1.2
    assert summary["overall"]["tried"] == 5


def all_events(shell: Shell) -> list[ev.Event]:
    if not (shell.folder / "runs.db").exists():
        return []
    return [event for log in logs(shell).values() for event in log]
