"""The real command line: in this process where it only has to be right, in one of its own where that matters."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ksearch.cli.boundary import guarded
from ksearch.cli.main import app

KSEARCH = [sys.executable, "-m", "ksearch.cli.main"]


@dataclass(frozen=True)
class Shell:
    """A folder to work in, with a store of its own and an environment without anybody's settings."""

    folder: Path
    env: Mapping[str, str]
    own_process: bool = False

    def __call__(self, *args: str, stdin: str = "", code: int | None = 0, **env: str) -> str:
        """Run `ksearch ARGS`, check the exit code, return stdout."""
        return self.both(*args, stdin=stdin, code=code, **env)[0]

    def both(self, *args: str, stdin: str = "", code: int | None = 0, **env: str) -> tuple[str, str]:
        run = self._process if self.own_process else self._here
        found, out, err = run(args, stdin, {**self.env, **env})
        if code is not None:
            assert found == code, f"{args}: {found}\n{out}\n{err}"
        assert "Traceback" not in err, err
        return out, err

    def _here(self, args: tuple[str, ...], stdin: str, env: Mapping[str, str]) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        with (
            mock.patch.dict(os.environ, env, clear=True),
            mock.patch.object(sys, "stdin", given),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = guarded(lambda: app(args, prog_name="ksearch", standalone_mode=False))
        return code, out.getvalue(), err.getvalue()

    def _process(self, args: tuple[str, ...], stdin: str, env: Mapping[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            [*KSEARCH, *args],
            cwd=self.folder,
            env=dict(env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def json(self, *args: str, code: int = 0, stdin: str = "") -> Any:
        return json.loads(self(*args, "--json", code=code, stdin=stdin), parse_constant=_not_strict)

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*KSEARCH, *args],
            cwd=self.folder,
            env={**self.env, **env},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def fails(self, *args: str, code: int, stdin: str = "", **env: str) -> str:
        """Run what must fail, and return its one message."""
        out, err = self.both(*args, code=code, stdin=stdin, **env)
        assert out == "", out
        messages = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(messages) == 1, err
        return messages[0]


def _not_strict(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def shell_in(folder: Path, *, own_process: bool = False) -> Shell:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KSEARCH_", "XDG_"))}
    env = {**kept, "HOME": str(folder), "KSEARCH_STORE": str(folder / "runs.db")}
    return Shell(folder, env, own_process)
