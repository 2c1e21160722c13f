"""The real thing in a real terminal: tmux shows what a person would see."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ksearch.errors import StoreError
from ksearch.run import Run
from ksearch.store import open_store
from ksearch.types import NodeStatus

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: apt-get install tmux"),
]
KSEARCH = f"{shlex.quote(sys.executable)} -m ksearch.cli.main"
PATIENCE_S = 40


class Terminal:
    """A tmux server of its own, with one window."""

    def __init__(self, folder: Path, width: int = 80, height: int = 24) -> None:
        self.socket = str(folder / "tmux")
        env = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], "HOME": str(folder)}
        env |= {"KSEARCH_STORE": str(folder / "runs.db"), "PAGER": "less", "PS1": "$ ", "SHELL": "/bin/sh"}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "env -i "
                  + " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items()) + " sh")  # fmt: skip

    def tmux(self, *args: str) -> str:
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *args], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def seen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, holds: Callable[[str], bool]) -> str:
        end = time.monotonic() + PATIENCE_S
        while not holds(text := self.seen()):
            assert time.monotonic() < end, text
            time.sleep(0.2)
        return text

    def shows(self, *words: str) -> str:
        return self.until(lambda text: all(word in text for word in words))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    found.tmux("kill-server")


def state_of(store: Path) -> Run:
    with open_store(store, readonly=True) as opened:
        return Run(opened, "live")


def began(store: Path) -> bool:
    try:
        return len(state_of(store).state.tree) >= 3
    except StoreError:
        return False


@pytest.fixture
def search(tmp_path: Path) -> Iterator[Path]:
    """A search that goes on in another process; returns its store."""
    store = tmp_path / "runs.db"
    env = {**os.environ, "KSEARCH_STORE": str(store), "KSEARCH_FAKE_MS": "250"}
    args = ["run", "--model", "fake:1", "--name", "live", "--evaluations", "500", "--stagnation", "30", "--quiet"]
    started = subprocess.Popen([sys.executable, "-m", "ksearch.cli.main", *args], env=env, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while not began(store):
            assert time.monotonic() < end, "the search does not begin"
            time.sleep(0.3)
        yield store
    finally:
        started.kill()
        started.wait()


def test_a_search_is_watched_steered_and_left_alone(terminal: Terminal, search: Path) -> None:
    terminal.keys(f"echo before; {KSEARCH} watch live", "Enter")
    first = terminal.shows("evaluations", "last event", "root: the baseline", "◐ n1", "j/k move")
    assert all(len(line) <= 80 for line in first.splitlines())
    assert "before" not in first
    count = first.split(" evaluations")[0].split()[-1]
    terminal.until(lambda text: " evaluations" in text and text.split(" evaluations")[0].split()[-1] != count)

    # Prune: it asks which node, and the engine does it.
    terminal.shows("n2")
    terminal.keys("x")
    terminal.shows("prune which node")
    terminal.keys("BSpace", "BSpace", "BSpace", "BSpace")
    terminal.keys("n2", "Enter")
    terminal.shows("done: prune n2")
    assert state_of(search).state.tree["n2"].status is NodeStatus.PRUNED

    # Pause: the search in the other process stops and says so.
    terminal.keys("p")
    terminal.shows("done: pause", "paused: asked at the terminal")
    assert state_of(search).state.paused == "asked at the terminal"

    # Enter: the diff in the pager, and back.
    terminal.keys("g", "j")
    terminal.keys("Enter")
    terminal.shows("n1", "program")
    assert "j/k move" not in terminal.seen()
    terminal.keys("q")
    terminal.shows("j/k move", "n1")

    # A narrower, then a larger window.
    terminal.tmux("resize-window", "-x", "100", "-y", "30")
    wide = terminal.until(lambda text: any(len(line) > 80 for line in text.splitlines()))
    assert max(map(len, wide.splitlines())) <= 100
    terminal.tmux("resize-window", "-x", "60", "-y", "16")
    terminal.until(lambda text: max(map(len, text.splitlines())) <= 60 and "j/k move" in text and "n1" in text)
    terminal.tmux("resize-window", "-x", "80", "-y", "24")
    terminal.shows("j/k move")

    terminal.keys("q")
    after = terminal.shows("run live paused")
    assert "before" in after
    assert "j/k move" not in after


@pytest.mark.parametrize("how", ["Ctrl-C", "TERM", "HUP"])
def test_the_terminal_is_its_old_self_after_an_end(terminal: Terminal, search: Path, how: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    terminal.keys(f"echo before; sh -c 'echo $$ > {pid}; exec {KSEARCH} watch live'", "Enter")
    terminal.shows("j/k move")
    if how == "Ctrl-C":
        terminal.keys("C-c")
    else:
        os.kill(int(pid.read_text()), {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP}[how])
    after = terminal.shows("no longer watched")
    assert "before" in after
    assert "j/k move" not in after
    assert "Traceback" not in after
    terminal.keys("echo ty", "ped", "Enter")  # what is typed is shown again: keys are read by the shell
    terminal.until(lambda text: text.count("typed") == 2)
    seq = state_of(search).seq
    time.sleep(2)
    after_all = state_of(search)
    assert after_all.seq > seq  # the search goes on
    assert after_all.state.ended is None
