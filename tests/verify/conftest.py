from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ksearch.certificate import seal
from ksearch.tasks import Task, init_task, load_task
from ksearch.types import Program
from ksearch.verify import Effort, Verified, verify

QUICK = Effort(first_s=0.1, confirm_s=0.4)
Body = dict[str, Any]


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
    beside = variant(task, "#include <cmath>", "#include <cmath> // the same")
    for _ in range(3):  # what else runs on this machine may spoil the timing of one of them
        found = verify(task, [slow], [beside], QUICK)
        if found.passed:
            return found
    pytest.fail(f"an honest program does not pass here: {found.body['problems']}")


@pytest.fixture(scope="session")
def golden() -> Verified:
    """A real certificate of the past: format 1 has to stay checkable, whatever statistics are later done with."""
    data = (Path(__file__).parent / "golden.certificate.json").read_bytes()
    return Verified(json.loads(data), data)


@pytest.fixture
def resealed(golden: Verified) -> Iterator[Callable[[Callable[[Body], object]], bytes]]:
    """A certificate that somebody changed who knows how to seal one."""

    def change(edit: Callable[[Body], object]) -> bytes:
        body = copy.deepcopy(golden.body)
        edit(body)
        return seal(body)

    return change


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)
