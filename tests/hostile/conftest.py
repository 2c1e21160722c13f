"""Whole runs against a server that misbehaves: the real command line, store, prompts and parsers. Only measuring, which
is not what fails here, is a stand-in."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ksearch.run import Run
from ksearch.service import desks
from ksearch.service.fleets import Measurers
from ksearch.store import Store, open_store
from ksearch.testing.fakes import FakeEvaluator
from ksearch.testing.model_server import Asked, Scripted, chat
from ksearch.types import Program
from tests.cli.shell import Shell, shell_in

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
PLAN = json.dumps({"edits": [{"op": "insert", "parent": "root", "title": "Tile", "value": 0.9}]})
SOURCE = 'extern "C" void run(const float* x, float* y, long rows, long cols) {{ /* {0} 0x1.26bb1bbb55516p+1 */ }}\n'
# Quick, so that a test can wait for it: what is minutes in life is a fraction of a second here.
QUICK = {
    "KSEARCH_RETRY_SECONDS": "0.01",
    "KSEARCH_RETRY_LIMIT_SECONDS": "0.1",
    "KSEARCH_MODEL_TRIES": "2",
    "KSEARCH_OUTAGE_SECONDS": "0.2",
    "KSEARCH_REPLY_SECONDS": "10",
}


class QuickEvaluator(FakeEvaluator):
    """Takes the place of the evaluator, and passes whatever it is given."""

    def _fails(self, program: Program) -> bool:
        return False


@pytest.fixture(autouse=True)
def _house(monkeypatch: pytest.MonkeyPatch) -> None:
    measurers = Measurers(QuickEvaluator(), lambda: None)
    monkeypatch.setattr(desks, "measurers", lambda *_: contextlib.nullcontext(measurers))
    for name in [*PROXIES, *(name for name in os.environ if name.endswith("_API_KEY"))]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = shell_in(tmp_path)
    return Shell(made.folder, {**made.env, **QUICK})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.db") as made:
        yield made


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], Run]:
    return lambda name: Run(open_store(tmp_path / "runs.db"), name)


def is_plan(asked: Asked) -> bool:
    """Whether the planner asks: it alone is held to a schema, or told of edits."""
    return "response_format" in asked.body or "edits" in json.dumps(asked.body)


def good(asked: Asked, number: int) -> Scripted:
    """A sound answer; each program is another."""
    return chat(PLAN) if is_plan(asked) else chat(f"```cpp\n{SOURCE.format(number)}```\n")


class Clock:
    """Counts calls of a role, so that a script can say which of them fail."""

    def __init__(self, answer: Callable[[Asked, int], Scripted]) -> None:
        self.answer = answer
        self.count = 0

    def __call__(self, asked: Asked) -> Scripted:
        self.count += 1
        return self.answer(asked, self.count)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)
