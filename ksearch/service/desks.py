"""Who answers a run that goes on in this process, by the settings it was begun with."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ksearch.config import RunConfig
from ksearch.drivers import Desk
from ksearch.errors import BadInput
from ksearch.run import Run
from ksearch.service.beginning import setting

FAKE = "fake"  # for tests of what surrounds a search: deterministic, measures nothing


def open_desk(run: Run) -> Desk:
    """Raises:
    BadInput: nobody in this process can answer the run.
    """
    config = setting(run.state).config
    if config.model == FAKE or config.model.startswith(f"{FAKE}:"):
        return _fake(config)
    raise BadInput(
        f"run {run.id} is answered by hand: `ksearch ask {run.id}` hands out its work, `ksearch tell` takes it"
    )


def _fake(config: RunConfig) -> Desk:
    """The stand-ins. KSEARCH_FAKE_CALLS: file that notes each call; KSEARCH_FAKE_MS: how long each takes."""
    from ksearch.testing.fakes import fake_desk

    calls, pause_s = os.environ.get("KSEARCH_FAKE_CALLS"), float(os.environ.get("KSEARCH_FAKE_MS", "0")) / 1000

    def note(text: str) -> None:
        if calls:
            with Path(calls).open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
        time.sleep(pause_s)

    seed = config.model.partition(":")[2]
    return fake_desk(int(seed) if seed.isdigit() else 0, note)
