"""The coordinator's trusted children, and what may become of any child: its failures, by whose they are."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ksearch.errors import EvaluatorError
from ksearch.evaluators import wire

ROOT = Path(__file__).resolve().parents[2]  # what has to be on sys.path for `import ksearch`
FIRST_UID, UIDS = 61_000, 4_000


class Broken(Exception):
    """A part of the evaluator failed: what was being measured is lost, not judged."""


class TooBusy(Broken):
    """The machine did not let anything be decided; every process is sound."""


class NoMemory(Broken):
    """The oracle found no memory: too little for the task, or the program being measured has taken it."""


class Ended(Exception):
    """The jailed process has ended; `ending` says how."""

    def __init__(self, ending: wire.Message) -> None:
        super().__init__(str(ending))
        self.ending = ending


class Overdue(Exception):
    """A limit passed; the process has been killed. `ending` says how much processor time it had used."""

    def __init__(self, limit_s: float, ending: wire.Message) -> None:
        super().__init__(f"{limit_s} s")
        self.limit_s, self.ending = limit_s, ending


class Cheated(Exception):
    """What came from the runner is no honest answer."""


class Flooded(Exception):
    """More printed than anybody will read."""


def python_paths() -> list[str]:
    """Where ksearch and NumPy are found: the children's sys.path, whatever the environment says."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        raise EvaluatorError("NumPy is not installed for this Python: pip install numpy")
    return [str(ROOT), str(Path(spec.origin).parents[1])]


def visible_paths() -> tuple[str, ...]:
    """What a jailed process may read besides the system: this Python, NumPy, and this package."""
    paths = {sys.prefix, sys.base_prefix, str(ROOT / "ksearch"), python_paths()[1]}
    return tuple(sorted(p for p in paths if p not in ("/", "/usr", "/root", "/home")))


def clean_environment(threads: int) -> dict[str, str]:
    keys = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "LANG": "C.UTF-8", **{key: str(threads) for key in keys}}


class Service:
    """A trusted child: the oracle or the template. One request at a time."""

    def __init__(self, module: str, environment: dict[str, str]) -> None:
        self.name = module
        self.sock, theirs = wire.pair()
        code = f"import sys; sys.path[:0] = {python_paths()!r}; from ksearch.evaluators.{module} import main; main()"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-c", code, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
            )  # fmt: skip

    def send(self, message: wire.Message, fds: Sequence[int] = ()) -> None:
        try:
            wire.send(self.sock, message, fds)
        except (wire.Closed, OSError) as error:
            raise Broken(f"the {self.name} process is gone (exit code {self.process.poll()})") from error

    def ask(self, message: wire.Message, fds: Sequence[int] = (), timeout_s: float = 300.0) -> tuple[Any, list[int]]:
        """Send and wait for the answer.

        Raises:
            EvaluatorError: the task's own code is at fault.
            Broken: this service is.
        """
        self.send(message, fds)
        self.sock.settimeout(timeout_s)
        try:
            answer, got = wire.recv(self.sock)
        except TimeoutError as error:
            raise Broken(f"the {self.name} process gave no answer to {message['do']} for {timeout_s} s") from error
        except wire.Closed as error:
            raise Broken(f"the {self.name} process died during {message['do']}") from error
        if "task_fault" in answer:
            raise EvaluatorError(str(answer["task_fault"]))
        if "no_memory" in answer:
            raise NoMemory(f"the {self.name} process ran out of memory: {answer['no_memory']}")
        if "broken" in answer:
            raise Broken(f"{self.name}: {answer['broken']}")
        return answer, got

    def close(self) -> None:
        self.sock.close()
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
