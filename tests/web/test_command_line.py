"""`ksearch ui` as a person starts and ends it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ksearch.store import Store, export_run

COMMAND = [sys.executable, "-m", "ksearch.cli.main", "ui", "--no-open"]


def started(*args: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S{40,}", process.stdout.readline())
    assert found, process.communicate(timeout=20)
    return process, found[0]


def test_it_prints_an_address_serves_and_ends_without_a_traceback(finished_store: Path) -> None:
    process, address = started("softmax-1", "--store", str(finished_store))
    base, token = address.split("?token=")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{base}api/runs", timeout=20)
    request = urllib.request.Request(f"{base}api/stream", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as stream:  # an open page, when Ctrl-C comes
        assert stream.readline() == b"retry: 1000\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "Traceback" not in out + err
    assert "ERROR" not in err


def test_exported_run_is_served_for_viewing_only(viewed: Store, tmp_path: Path) -> None:
    export_run(viewed, "softmax-1", tmp_path / "run.jsonl")
    process, address = started(str(tmp_path / "run.jsonl"))
    base, token = address.split("?token=")
    request = urllib.request.Request(f"{base}api/snapshot", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        assert b'"speaks":false' in reply.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [(("nobody",), "holds no run"), (("--port", "1", "--host", "203.0.113.9"), "cannot listen on 203.0.113.9:1")],
)
def test_what_cannot_be_served_is_said_in_one_line(finished_store: Path, args: tuple[str, ...], said: str) -> None:
    done = subprocess.run([*COMMAND, *args, "--store", str(finished_store)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
