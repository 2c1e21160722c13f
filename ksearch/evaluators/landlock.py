"""Landlock: a file system fence that any process may put around itself, also inside a container."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from ksearch.evaluators.linux import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TRUNCATE = 1 << 14
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc", "/proc", "/sys", "/opt", "/nix")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> int:
    """From now on only these paths (and the system's own, read-only) can be opened; no TCP, no foreign signals.

    Returns the version in force. `no_new_privs` must be set before.

    Raises:
        OSError: no Landlock here.
    """
    known = version()
    if not known:
        raise OSError(38, "Landlock is not available")
    files = (1 << (13 if known < 2 else 14 if known < 3 else 15 if known < 5 else 16)) - 1
    attributes = struct.pack("<QQQ", files, 3 if known >= 4 else 0, 3 if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = syscall(_CREATE, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in (*SYSTEM, *readable):
            _allow(ruleset, path, _READ & files)
        for path in (*writable, *DEVICES):
            _allow(ruleset, path, files)
        syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return known


def _allow(ruleset: int, path: str, access: int) -> None:
    with suppress(OSError):  # a path that does not exist needs no rule
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not os.path.isdir(path):  # noqa: PTH112
                access &= _FILE_ONLY
            rule = struct.pack("<Qi", access, fd)
            syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
        finally:
            os.close(fd)
