"""How soon a campaign of 2,000 tasks begins, and what it costs to come back to it.

    python benchmarks/campaign.py

1. from the command to the first task's first measurement, in s (aim: at most 5): reading the list included, everything
   else is looked at when a task's turn comes;
2. the same command again when 200 tasks have begun, from start to the next measurement, in s.

The tasks are the template's; planner, writer and evaluator are stand-ins that answer at once.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ksearch.tasks import init_task

TASKS, BEGUN = 2000, 200
COMMAND = [sys.executable, "-m", "ksearch.cli.main", "campaign"]
FAKE = ["--model", "fake:1", "--least", "1", "--no-lint"]


def first_measurement(args: list[str], folder: Path, env: dict[str, str]) -> float:
    """Seconds until a program has passed or failed; the process is killed then."""
    start = time.perf_counter()
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    driver = subprocess.Popen([*COMMAND, *args], cwd=folder, env=env, text=True, **quiet)
    assert driver.stdout
    for line in driver.stdout:
        if " passed: " in line or "_error: " in line:
            break
    took = time.perf_counter() - start
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    return took


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = init_task(folder / "tasks" / "t0000").folder
        for n in range(1, TASKS):
            shutil.copytree(task, folder / "tasks" / f"t{n:04}")
        env = {**os.environ, "KSEARCH_STORE": str(folder / "runs.db"), "KSEARCH_CONFIG": os.devnull}
        took = first_measurement(["tasks", *FAKE], folder, env)
        print(f"a campaign of {TASKS:,} tasks: {took:.1f} s from the command to its first measurement")
        some = ["tasks", *FAKE, "--evaluations", str(BEGUN), "--quiet"]
        subprocess.run([*COMMAND, *some], cwd=folder, env=env, check=True, capture_output=True)
        took = first_measurement(["tasks", "--evaluations", str(TASKS)], folder, env)
        print(f"the same again, {BEGUN} tasks begun: {took:.1f} s to the next measurement")


if __name__ == "__main__":
    main()
