"""One lock file for the machine: two searches never time at once. The kernel releases it when a holder dies."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ksearch.errors import EvaluatorError


def default_path() -> Path:
    return Path(tempfile.gettempdir()) / "ksearch-timing.lock"


@contextmanager
def timing_lease(path: Path | None = None, timeout_s: float = 3600.0) -> Iterator[float]:
    """Hold the machine for timing. Gives the seconds waited.

    Raises:
        EvaluatorError: the lock file cannot be opened, or somebody holds it for longer than `timeout_s`.
    """
    path = path or default_path()
    fd = _open(path)
    start = time.monotonic()
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - start > timeout_s:
                    text = f"{path} has been held by another search for {timeout_s:g} s"
                    raise EvaluatorError(f"{text}: end that search, or wait for it") from None
                time.sleep(0.01)
        yield time.monotonic() - start
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    # First without O_CREAT: in a sticky folder the kernel refuses to "create" a file that belongs to another user.
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise EvaluatorError(f"{path}: {error.strerror}; name another lock file (lease)") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise EvaluatorError(f"{path}: {error.strerror}; name another lock file (lease)") from error
    with suppress(OSError):
        os.fchmod(fd, 0o666)
    return fd
