"""Searches by real models that run on this machine's processor, unattended, over HTTP.

The smallest one writes nonsense: that must end in a sound run. The larger one can write programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ksearch.events import AnyEvent, Asked, Received
from ksearch.protocol import Kind
from ksearch.run import Run
from ksearch.service.beginning import log_of
from ksearch.state import State
from ksearch.store import open_store
from tests.local_model.serving import served
from tests.local_model.weights import QWEN, SMOLLM, Weights, fetched

EVALUATIONS = 30


def search(
    weights: Weights, folder: Path, name: str, threads: int = 1, **settings: object
) -> tuple[int, State, list[AnyEvent]]:
    """Exit code, state and log of `ksearch run` as a user would call it."""
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    model = fetched(weights)
    env = {**os.environ, "LOCAL_KEY": "none", "KSEARCH_STORE": str(folder / "runs.db")}
    with served(model, folder / "server.log", threads) as base_url:
        lines = {
            "task": "softmax", "model": f"openai:{weights.name}", "base_url": base_url, "key_env": "LOCAL_KEY",
            "brief_prompts": True, "prompt_tokens": 6000, "record": "transcript.jsonl", **settings,
        }  # fmt: skip
        (folder / "ksearch.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in lines.items()))
        command = [sys.executable, "-m", "ksearch.cli.main", "run", "--name", name, "--json"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    print(done.stdout[-2000:], done.stderr[-4000:])
    with open_store(str(folder / "runs.db"), readonly=True) as store:
        run = Run(store, name)
        return done.returncode, run.state, log_of(run)


def accounted(log: list[AnyEvent], folder: Path) -> int:
    """Replies in the log, each to a request of it, each in the transcript."""
    asked = {e.request.id for e in log if isinstance(e, Asked) and e.request.kind is not Kind.EVALUATE}
    received = [e for e in log if isinstance(e, Received)]
    answers = [e for e in received if e.request_id in asked]
    assert answers
    assert all(e.cost.tokens > 0 for e in answers)
    assert len((folder / "transcript.jsonl").read_text().splitlines()) >= len(answers)
    return len(answers)


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_model_that_writes_nonsense_ends_in_a_sound_run(tmp_path: Path) -> None:
    code, state, log = search(SMOLLM, tmp_path, "nonsense", evaluations=3, attempts=5, stagnation=2, reply_tokens=400)
    assert code in (0, 1, 5)
    assert state.ended or code == 1
    assert accounted(log, tmp_path) >= 2


@pytest.mark.local_model
@pytest.mark.timeout(3 * 3600)
def test_a_model_for_a_laptop_searches_to_a_passing_program(tmp_path: Path) -> None:
    code, state, log = search(
        QWEN,
        tmp_path,
        "laptop-demo",
        threads=os.cpu_count() or 1,
        evaluations=EVALUATIONS,
        attempts=4 * EVALUATIONS,
        reply_tokens=2000,
    )
    assert code == 0
    assert state.evaluated >= EVALUATIONS
    assert accounted(log, tmp_path) >= EVALUATIONS
    assert state.best_id is not None
    best = state.evaluations[state.best_id]
    print(f"best: {best.speedup} over the baseline, transcript in {tmp_path}")
