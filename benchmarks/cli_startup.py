"""`ksearch --help` against a bare typer app with as many commands: median wall time of a fresh process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ksearch.cli.command import app as said
from ksearch.cli.main import app

ROUNDS = 15


def bare(commands: int) -> str:
    """A typer app whose commands do nothing."""
    lines = ["import typer", "app = typer.Typer()"]
    for number in range(commands):
        lines += ["@app.command()", f"def c{number}(name: str = '', count: int = 1) -> None:", "    '''Nothing.'''"]
    return "\n".join([*lines, "app()"])


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    commands = len(app.registered_commands) + len(said.registered_commands)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "bare.py"
        script.write_text(bare(commands))
        ours, theirs = [sys.executable, "-m", "ksearch.cli.main", "--help"], [sys.executable, str(script), "--help"]
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS + 1)][1:]  # the first warms the disk
    mine, bare_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"ksearch --help      {mine * 1000:6.0f} ms")
    print(f"bare typer app      {bare_s * 1000:6.0f} ms, {commands} commands")
    print(f"ratio               {mine / bare_s:6.2f} (at most 2)")


if __name__ == "__main__":
    main()
