"""A provider that is down: the whole run pauses, says so, keeps its budget, probes, and goes on by itself."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ksearch import events as ev
from ksearch.cli.watch_picture import View, picture
from ksearch.drivers import Pools, drive_many
from ksearch.errors import StoreError
from ksearch.protocol import Done
from ksearch.run import Run
from ksearch.service.beginning import log_of, setting
from ksearch.service.desks import staffed
from ksearch.service.outlasting import outlast
from ksearch.state import State
from ksearch.store import open_store
from ksearch.testing.model_server import Asked, ModelServer, Scripted, cut, status
from ksearch.web.head import head
from ksearch.web.reader import RunReader
from tests.cli.shell import Shell
from tests.hostile.conftest import Clock, good, plain

pytestmark = pytest.mark.timeout(30)
Opened = Callable[[str], Run]
TOKENS = 120  # of each reply
PATIENT: Any = {"KSEARCH_OUTAGE_SECONDS": "0.4"}


def fails_from(first: int, last: int, how: Scripted) -> Clock:
    """Answers, but for some calls."""
    return Clock(lambda asked, n: how if first <= n <= last else good(asked, n))


def begin(shell: Shell, url: str, *more: str, code: int = 0, **env: str) -> tuple[str, str]:
    args = ("run", "--task", "softmax", "--name", "a", "--model", "openai:m", "--base-url", url, "--evaluations", "3")
    return shell.both(*args, *more, code=code, **env)


def when_paused(opened: Opened, act: Callable[[Run], object]) -> threading.Thread:
    """Do something from outside as soon as the run waits."""

    def watch() -> None:
        for _ in range(200):
            time.sleep(0.05)
            with contextlib.suppress(StoreError):  # not begun yet
                run = opened("a")
                if run.state.paused:
                    act(run)
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def kinds(run: Run) -> list[str]:
    return [type(e).__name__ for e in log_of(run)]


@pytest.mark.parametrize(
    ("how", "last"),
    [(status(503, "overloaded"), 8), (status(500), 8), (status(429), 8), (cut(status(200), 0), 5)],
    ids=["503", "500", "429", "cut"],
)
def test_a_provider_that_is_down_for_a_while_only_costs_time(
    shell: Shell, opened: Opened, how: Scripted, last: int
) -> None:
    with ModelServer([fails_from(2, last, how)]) as server:
        out, _ = begin(shell, server.url)
    run = opened("a")
    assert run.state.ended == "budget: evaluations"
    assert run.state.evaluated == 3
    assert run.state.attempts == 3, "no attempt is spent on an outage"
    assert run.state.spent.tokens == 4 * TOKENS
    pauses = [e for e in log_of(run) if isinstance(e, ev.Paused)]
    assert pauses
    for pause in pauses:
        assert pause.until is not None
        assert re.match(r"until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, then asked again: openai", pause.reason)
        assert f"openai:m at {server.url}" in pause.reason
    assert sum(isinstance(e, ev.Commanded) and e.author == "engine" for e in log_of(run)) == len(pauses)
    assert "paused by engine: until 20" in out


def test_an_outage_before_the_first_plan_does_not_end_the_run(shell: Shell, opened: Opened) -> None:
    with ModelServer([fails_from(1, 10, status(503))]) as server:
        begin(shell, server.url, KSEARCH_OUTAGE_SECONDS="0.02")
    run = opened("a")
    assert run.state.ended == "budget: evaluations"
    assert "PlanAbandoned" not in kinds(run)
    assert run.state.spent.tokens == 4 * TOKENS


def test_a_server_that_cannot_be_reached_and_then_starts(shell: Shell, opened: Opened) -> None:
    port_of = ModelServer([status(500)])
    url, port = port_of.url, port_of.port
    port_of.close()
    with_later: list[ModelServer] = []

    def start() -> None:
        time.sleep(0.7)
        later = ModelServer([Clock(good)], port=port)
        later.__enter__()
        with_later.append(later)

    thread = threading.Thread(target=start)
    thread.start()
    try:
        begin(shell, url)
    finally:
        thread.join()
        with_later[0].__exit__(None, None, None)
    run = opened("a")
    assert run.state.ended == "budget: evaluations"
    assert any(isinstance(e, ev.Paused) and "cannot be reached" in e.reason for e in log_of(run))
    assert run.state.spent.tokens == 4 * TOKENS


@pytest.mark.parametrize(
    "how",
    [
        status(429, "slow down", headers={"Retry-After": "0.3"}),
        status(429, "You've hit your usage limit. Try again in 0.3 seconds."),
        status(429, "insufficient_quota", headers={"Retry-After": "0.3"}),
    ],
    ids=["retry-after", "words", "quota"],
)
def test_a_limit_with_a_time_is_waited_for_exactly_once(shell: Shell, opened: Opened, how: Scripted) -> None:
    with ModelServer([fails_from(2, 2, how)]) as server:
        begin(shell, server.url)
        assert len(server.requests) == 1 + 1 + 3
    run = opened("a")
    pause = next(e for e in log_of(run) if isinstance(e, ev.Paused))
    assert pause.until is not None
    assert 0.1 <= pause.until - pause.at <= 0.31
    assert run.state.ended == "budget: evaluations"
    assert run.state.spent.tokens == 4 * TOKENS


def test_status_watch_and_dashboard_say_what_is_waited_for_and_until_when(
    shell: Shell, opened: Opened, tmp_path: Path
) -> None:
    with ModelServer([fails_from(2, 2, status(503, "busy", headers={"Retry-After": "7200"}))]) as server:
        when_paused(opened, lambda _: os.kill(os.getpid(), signal.SIGINT))
        begin(shell, server.url, code=130)
    run = opened("a")
    until = run.state.paused_until
    assert until is not None
    assert until - time.time() == pytest.approx(7200, abs=30)
    clock = time.strftime("%H:%M:%S", time.gmtime(until))
    assert clock in plain(shell("status", "a"))
    found = shell.json("status", "a")
    assert found["paused_until"] == until
    assert "503" in found["paused"]
    text = "\n".join(line for _, line in picture("a", run.state, View(), time.time(), 200, 40))
    assert clock in text
    assert "goes on by itself in 1 h 59 min" in text or "goes on by itself in 2 h 00 min" in text
    late = "\n".join(line for _, line in picture("a", run.state, View(), until + 100, 200, 40))
    assert "nobody is at work" in late
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        reader = RunReader(store, "a", poll_s=0)
        reader.refresh()
        told = head(reader, reader._seen)
    assert told["paused_until"] == until
    assert clock in told["paused"]


@pytest.mark.parametrize("at_once", ["1", "4"])
def test_ctrl_c_while_it_waits_loses_nothing_and_resume_goes_on_at_once(
    shell: Shell, opened: Opened, at_once: str
) -> None:
    down = True

    def answer(asked: Asked, n: int) -> Scripted:
        return status(503, headers={"Retry-After": "3600"}) if down and n > 1 else good(asked, n)

    with ModelServer([Clock(answer)]) as server:
        when_paused(opened, lambda _: os.kill(os.getpid(), signal.SIGINT))
        _, err = begin(shell, server.url, code=130, KSEARCH_PARALLEL=at_once)
        assert "nothing is lost" in err
        run = opened("a")
        assert not any(p.lease for p in run.state.pending.values())
        assert run.state.reserved == {}
        down = False
        shell("resume", "a")
    run = opened("a")
    assert run.state.ended == "budget: evaluations"
    assert run.state.evaluated == 3
    assert run.state.attempts == 3
    assert run.state.spent.tokens == TOKENS * kinds(run).count("Received")


def test_resume_from_another_shell_has_it_tried_at_once(shell: Shell, opened: Opened) -> None:
    with ModelServer([fails_from(2, 2, status(503, headers={"Retry-After": "3600"}))]) as server:
        thread = when_paused(opened, lambda run: run.command(ev.Resume(), "ada"))
        begin(shell, server.url)
        thread.join()
    assert opened("a").state.ended == "budget: evaluations"


def test_several_workers_send_one_probe_between_them(shell: Shell, opened: Opened) -> None:
    """Six calls at once meet the outage; then there is never more than one on the line, until one has been answered."""
    lock, out, most, probes = threading.Lock(), 0, 0, 0
    waited = threading.Event()

    def answer(asked: Asked, n: int) -> Scripted:
        nonlocal out, most, probes
        if n == 1:
            return good(asked, n)
        with lock:
            out += 1
            probes += waited.is_set()
            up = probes > 1
            most = max(most, out) if waited.is_set() and not up else most
        time.sleep(0.05)
        with lock:
            out -= 1
        return good(asked, n) if up else status(503)

    def see(event: ev.Event, _: State) -> None:
        if isinstance(event, ev.Commanded) and event.author == "engine":
            waited.set()

    with ModelServer([Clock(answer)]) as server:
        begun = ("new", "--name", "a", "--task", "softmax", "--evaluations", "12", "--stagnation", "20")
        shell(*begun, KSEARCH_MODEL="openai:m", KSEARCH_BASE_URL=server.url, KSEARCH_WIDTH="6", **PATIENT)
        run = opened("a")
        run.watchers.append(see)
        at = setting(run.state)
        with staffed(at.config, at.task) as staff:
            desk = staff.desk(run, at)
            ended = outlast(run, lambda: drive_many(run, desk, lambda: Pools(6, 2)), time.sleep, staff.try_now)
    assert ended == Done("budget: evaluations")
    assert most == 1, "only the probe"
    assert kinds(run).count("Paused") >= 2
    assert run.state.spent.tokens == 13 * TOKENS
    assert (run.state.evaluated, run.state.attempts) == (12, 12)
