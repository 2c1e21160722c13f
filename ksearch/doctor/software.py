"""Python, NumPy, compilers, SQLite, models: what is installed, and whether it really works."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ksearch
from ksearch.doctor.report import Line, fail, ok, warn
from ksearch.evaluators.options import EvaluatorOptions

PYTHON, NUMPY = (3, 11), (1, 26)
GCC_CURE = "Install one. Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++"
KERNEL = """\
extern "C" void run(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) {
        y[i] = 2.0f * x[i];
    }
}
"""
# In a process of its own: a library for another CPU dies of an illegal instruction.
CALL = """\
import ctypes, sys
x, y = (ctypes.c_float * 1000)(*range(1000)), (ctypes.c_float * 1000)()
ctypes.CDLL(sys.argv[1]).run(x, y, ctypes.c_long(1000))
sys.exit(list(y) != [2.0 * v for v in range(1000)])
"""


def python() -> Iterator[Line]:
    found = f"Python {platform.python_version()} ({sys.executable}), K-Search {ksearch.__version__}"
    if sys.version_info < PYTHON:
        yield fail("python", found, "Use Python 3.11 or newer")
    else:
        yield ok("python", found)
    spec = importlib.util.find_spec("numpy")
    if spec is None:
        yield fail("numpy", "not installed", f"{sys.executable} -m pip install numpy")
        return
    import numpy as np

    version = tuple(int(part) for part in np.__version__.split(".")[:2])
    where = f"NumPy {np.__version__} ({Path(np.__file__).parent})"
    if version < NUMPY:
        yield fail("numpy", where, f"{sys.executable} -m pip install -U numpy")
    else:
        yield ok("numpy", where)


def compilers(options: EvaluatorOptions | None = None) -> Iterator[Line]:
    """The compiler that evaluation uses has to work; others are only named."""
    options = options or EvaluatorOptions()
    path = shutil.which(options.compiler)
    if path is None:
        yield fail("compiler", f"no {options.compiler} in PATH={os.environ.get('PATH', '')}", GCC_CURE)
    else:
        yield _compiled(path, options.compiler_flags)
    for other in ("clang++", "g++"):
        if other != options.compiler and (found := shutil.which(other)):
            yield ok("other compiler", f"{_version(found)} ({found})")


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"version unknown: {error}"
    return done.stdout.partition("\n")[0] or "version unknown"


def _compiled(path: str, flags: Sequence[str]) -> Line:
    """Compile five lines with the flags of every evaluation, and run them."""
    what = f"{_version(path)} ({path}), flags {' '.join(flags)}"
    with tempfile.TemporaryDirectory(prefix="ksearch-doctor-") as folder:
        source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text(KERNEL)
        for words, step in (
            ([path, *flags, str(source), "-o", str(library)], "compile"),
            ([sys.executable, "-I", "-c", CALL, str(library)], "run"),
        ):
            try:
                done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
            except (OSError, subprocess.TimeoutExpired) as error:
                return fail("compiler", f"{what}: cannot {step} a kernel: {error}", GCC_CURE)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().partition("\n")[0] or f"exit code {done.returncode}"
                return fail("compiler", f"{what}: cannot {step} a kernel: {said}", GCC_CURE)
    return ok("compiler", f"{what}; compiled and ran a kernel")


def sqlite() -> Line:
    from ksearch.store.sqlite import has_wal_reset_bug, sound_module

    module, sound = sound_module()
    own = f"SQLite {sqlite3.sqlite_version} of this Python"
    if not sound:
        return warn(
            "sqlite",
            f"{own} can damage a database with two writers (the WAL-reset bug): the slower rollback journal is used",
            f"{sys.executable} -m pip install 'pysqlite3>=0.6.1', or a Python with SQLite 3.51.3 or newer",
        )
    if has_wal_reset_bug(sqlite3.sqlite_version_info):
        return ok("sqlite", f"SQLite {module.sqlite_version} of pysqlite3; {own} has the WAL-reset bug and is not used")
    return ok("sqlite", own)


def models(env: Mapping[str, str] | None = None) -> Iterator[Line]:
    """Names of keys only, never their values."""
    env = os.environ if env is None else env
    from ksearch.models.providers import PROVIDERS

    if importlib.util.find_spec("pydantic_ai") is None:
        cure = f"{sys.executable} -m pip install 'k-search[models]'"
        yield warn("models", "the extra is not installed: only agents, commands and transcripts can answer", cure)
    else:
        yield ok("models", "the extra is installed")
    keys = dict.fromkeys(p.key_env for p in PROVIDERS.values() if p.key_env)
    if found := [name for name in keys if env.get(name)]:
        yield ok("keys", f"set: {', '.join(found)}")
    else:
        yield warn("keys", "no provider's key is set", f"Set one of {', '.join(keys)} to call a model directly")
