from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ksearch.certificate import seal
from ksearch.evaluators import lease
from ksearch.tasks import Task, init_task, load_task
from ksearch.types import Program
from ksearch.verify import Effort, Verified, verify

QUICK = Effort(first_s=0.1, confirm_s=0.4)
Body = dict[str, Any]


@pytest.fixture(scope="session", autouse=True)
def _own_lease(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Not to wait for what else is timed on this machine: nothing here is about how fast something is."""
    path = tmp_path_factory.mktemp("lease") / "lock"
    with mock.patch.object(lease, "default_path", return_value=path):
        yield


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """The task of `ksearch init`, small enough to be verified often."""
    folder = init_task(tmp_path_factory.mktemp("task") / "example").folder
    text = (folder / "task.toml").read_text()
    text = text.replace("rows = 256, cols = 4096", "rows = 60, cols = 601")
    (folder / "task.toml").write_text(text.replace("max = 2048", "max = 128").replace("max = 8192", "max = 1100"))
    return load_task(folder)


def variant(task: Task, old: str, new: str) -> Program:
    """The baseline with a piece of it replaced."""
    (text,) = task.baseline.sources.values()
    assert text.count(old) == 1
    return Program({"kernel.cpp": text.replace(old, new)}, "kernel.cpp::run", "cpp")  # as from a reply


@pytest.fixture(scope="session")
def slow(task: Task) -> Program:
    """Right, and slower than the baseline by a lot."""
    return variant(
        task, "const int64_t i", "for (volatile int k = 0; k < 20; k = k + 1) {}\n            const int64_t i"
    )


@pytest.fixture(scope="session")
def wrong(task: Task) -> Program:
    return variant(task, "* up[i];", "* up[i] * 1.01f;")


@pytest.fixture(scope="session")
def verified(task: Task, slow: Program) -> Verified:
    """A real certificate: the slow program against the baseline, and a copy of it under another id."""
    return verify(task, [slow], [variant(task, "#include <cmath>", "#include <cmath> // the same")], QUICK)


@pytest.fixture
def resealed(verified: Verified) -> Iterator[Callable[[Callable[[Body], object]], bytes]]:
    """A certificate that somebody changed who knows how to seal one."""

    def change(edit: Callable[[Body], object]) -> bytes:
        body = copy.deepcopy(verified.body)
        edit(body)
        return seal(body)

    return change


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)
