"""Evaluators are opened once, shared, and closed when nobody uses them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ksearch.config import load
from ksearch.errors import EvaluatorError
from ksearch.mcp import staffing
from ksearch.mcp.staffing import Staffing
from ksearch.service.beginning import Setting
from ksearch.service.desks import Staff
from ksearch.tasks import load_task


def at(task: str, **more: object) -> Setting:
    return Setting(load({"task": task, "model": "command:never-called", **more}, env={}).config, {}, load_task(task))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was opened and closed, in turn."""
    told: list[str] = []

    @contextmanager
    def staffed(config: Any, task: Any, tell: Callable[[str], None]) -> Iterator[Staff]:
        assert config.model == "agent", "no model is opened to measure"
        if task.name == "gemm":
            raise EvaluatorError("the baseline does not build")
        told.append(f"open {task.name}")
        tell(f"a GPU for {task.name} is put aside")
        yield Staff(lambda *_: None, frozenset())  # type: ignore[arg-type, return-value]
        told.append(f"close {task.name}")

    monkeypatch.setattr(staffing, "staffed", staffed)
    return told


def test_runs_of_one_task_share_an_evaluator(opened: list[str]) -> None:
    shared = Staffing()
    with shared.staff(at("softmax")) as one, shared.staff(at("softmax")) as two, shared.staff(at("trimul")):
        assert one is two
        assert shared.open == 2
    shared.close()
    assert opened == ["open softmax", "open trimul", "close softmax", "close trimul"]


def test_that_a_gpu_was_put_aside_is_said_outside_the_protocol(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shared = Staffing()
    with shared.staff(at("softmax")):
        pass
    shared.close()
    assert capsys.readouterr() == ("", "ksearch: a GPU for softmax is put aside\n")


def test_who_measures_elsewhere_is_somebody_else(opened: list[str]) -> None:
    shared = Staffing()
    with shared.staff(at("softmax")) as here, shared.staff(at("softmax", pool="ray")) as there:
        assert here is not there
    shared.close()
    assert opened.count("open softmax") == 2


def test_an_idle_evaluator_is_closed_and_one_at_work_is_not(opened: list[str]) -> None:
    shared = Staffing(idle_s=0.1)
    with shared.staff(at("trimul")):
        with shared.staff(at("softmax")):
            pass
        deadline = time.monotonic() + 10
        while shared.open == 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert opened == ["open trimul", "open softmax", "close softmax"]
        with shared.staff(at("softmax")):  # and opened again
            pass
    shared.close()
    assert opened[3] == "open softmax"


def test_one_that_cannot_be_opened_is_tried_again(opened: list[str]) -> None:
    shared = Staffing()
    for _ in range(2):
        with pytest.raises(EvaluatorError), shared.staff(at("gemm")):
            pass
    assert shared.open == 0


def test_the_end_does_not_wait_for_one_at_work(opened: list[str]) -> None:
    shared, done = Staffing(), threading.Event()

    def work() -> None:
        with shared.staff(at("softmax")):
            done.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    while not shared.open:
        time.sleep(0.01)
    shared.close()
    assert opened == ["open softmax"]
    done.set()
    thread.join()
