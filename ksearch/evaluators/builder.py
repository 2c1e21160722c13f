"""Compiles programs in a jail: no network, no other files, limited time, memory and output; killed as a group."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import elf, leftovers, machine
from ksearch.evaluators.jail import JailSpec
from ksearch.evaluators.jailed import Jailed
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import Flooded, Overdue, Service
from ksearch.types import Program, Verdict

SOURCES = (".cpp", ".cc", ".cxx", ".c")
CUDA_SOURCES = (".cu", *SOURCES)
MAX_LIBRARY_BYTES = 256 << 20
_HARNESS = ("harness.cpp", "streams.cpp")


@dataclass(frozen=True, slots=True)
class Built:
    """A shared object in memory, and how it came to be. For Python programs `data` holds nothing."""

    data: bytes
    symbols: elf.Symbols
    command: tuple[str, ...]
    seconds: float
    log: str = ""


class BuildFailed(Exception):
    """The program does not build: `verdict`, one line for its writer, and the compiler's own words."""

    def __init__(self, verdict: Verdict, reason: str, log: str = "", seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.log, self.seconds = verdict, reason, log[:4000], seconds


def compiler_version(compiler: str) -> str:
    """First line of `--version`.

    Raises:
        EvaluatorError: there is no such compiler here.
    """
    path = shutil.which(compiler)
    if path is None:
        cure = "install the CUDA toolkit" if "nvcc" in compiler else "install it (Debian: apt-get install g++)"
        raise EvaluatorError(f"no compiler {compiler!r} in PATH: {cure}")
    found = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
    lines = [line for line in found.stdout.splitlines() if re.search(r"\d+\.\d+", line)]
    return lines[-1 if "nvcc" in compiler else 0] if lines else f"{compiler}: version unknown"


class Builder:
    """Builds for one evaluator; safe to use from several threads."""

    def __init__(
        self, template: Service, options: EvaluatorOptions, jail: Callable[..., JailSpec], threads: int
    ) -> None:
        self.template, self.options, self.jail, self.threads = template, options, jail, threads
        self.slots = threading.Semaphore(options.builds_at_once)
        self.cuda_flags: tuple[str, ...] = ()  # for the GPU at hand
        self._versions: dict[str, str] = {}

    def compiler_of(self, spec: TaskSpec) -> str:
        return self.options.cuda_compiler if spec.device == "cuda" else self.options.compiler

    def version(self, language: str) -> str:
        """The compiler's own words."""
        compiler = self.options.cuda_compiler if language == "cuda" else self.options.compiler
        if compiler not in self._versions:
            self._versions[compiler] = compiler_version(compiler)
        return self._versions[compiler]

    def harness(self) -> Built | None:
        """The native timing loop; None where there is no compiler, and the loop in Python has to do."""
        if shutil.which(self.options.compiler) is None:
            return None
        sources = {name: Path(__file__).with_name(name).read_text() for name in _HARNESS}
        program = Program(sources, "harness.cpp::ksearch_run", "cpp")
        return self.build_trusted(program, 120.0)

    def build_trusted(self, program: Program, limit_s: float) -> Built:
        """Build, or take it from the cache: only programs that the task's author or we wrote."""
        key = hashlib.sha256(
            "\0".join(
                [
                    program.id,
                    self.version(program.language),
                    platform.machine(),
                    machine.cpu_model(),
                    *self.flags(program.language),
                ]
            ).encode()
        ).hexdigest()
        path = machine.cache_folder(self.options.cache) / f"{key}.so"
        with suppress(OSError):
            data = path.read_bytes()
            return Built(data, elf.read_symbols(data), self._command(program), 0.0)
        built = self.build(program, limit_s)
        with suppress(OSError):  # a cache that cannot be written only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            draft.write_bytes(built.data)
            draft.replace(path)
        return built

    def build(self, program: Program, limit_s: float) -> Built:
        """Compile all source files into one shared object.

        Raises:
            BuildFailed: with the verdict.
        """
        with self.slots, tempfile.TemporaryDirectory(prefix=leftovers.prefix("ksearch-build-")) as folder:
            return self._build(program, Path(folder).resolve(), limit_s)

    def flags(self, language: str) -> list[str]:
        if language == "cuda":
            return [*self.options.cuda_flags, *self.cuda_flags]
        return [*self.options.compiler_flags, *(["-fopenmp"] if self.threads > 1 else [])]

    def _command(self, program: Program) -> tuple[str, ...]:
        cuda = program.language == "cuda"
        endings = CUDA_SOURCES if cuda else SOURCES
        files = sorted(p for p in program.sources if p.endswith(endings))
        if not files:
            names = ", ".join(program.sources)
            raise BuildFailed(Verdict.COMPILE_ERROR, f"no {' or '.join(endings)} file among: {names}")
        compiler = self.options.cuda_compiler if cuda else self.options.compiler
        return (compiler, *self.flags(program.language), "-I.", *files, "-o", "program.so")

    def _build(self, program: Program, folder: Path, limit_s: float) -> Built:
        command = self._command(program)
        self.version(program.language)  # a missing compiler is this machine's fault, not the program's
        spec = self.jail(folder=str(folder), build=True)
        for path, text in program.sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8", "surrogatepass")
        for made in (folder, *folder.rglob("*")):
            made.chmod(0o755 if made.is_dir() else 0o644)
            if spec.uid is not None:
                os.chown(made, spec.uid, spec.uid)
        start = time.monotonic()
        process = Jailed(self.template, spec, argv=command)
        try:
            ending = process.wait(limit_s)
        except Overdue:
            reason = f"the compiler did not finish within {limit_s:g} s"
            raise BuildFailed(Verdict.TIMEOUT, reason, process.log, limit_s) from None
        except Flooded as flood:
            raise BuildFailed(Verdict.COMPILE_ERROR, f"the compiler {flood}", process.log) from None
        finally:
            process.close()
        seconds = time.monotonic() - start
        if ending["exit"] != 0:
            raise BuildFailed(*_explain(process.log, ending), seconds)
        data = _take(folder / "program.so")
        return Built(data, elf.read_symbols(data), command, seconds, process.log[:4000])


def _take(path: Path) -> bytes:
    """Read the result without following a link that a hostile build may have put there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BuildFailed(Verdict.COMPILE_ERROR, "the compiler succeeded but left no shared object") from error
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_LIBRARY_BYTES:
            raise BuildFailed(Verdict.COMPILE_ERROR, f"the shared object has {about.st_size} bytes, too many")
        return file.read()


def _explain(log: str, ending: dict[str, object]) -> tuple[Verdict, str, str]:
    memory = re.search(r"virtual memory exhausted|out of memory|Cannot allocate memory|bad_alloc", log)
    if memory:
        return Verdict.OUT_OF_MEMORY, "the compiler ran out of the memory it may use", log
    lines = [line.strip() for line in log.splitlines() if re.search(r"\berror\b|undefined reference", line)]
    if lines:
        return Verdict.COMPILE_ERROR, "; ".join(lines[:3])[:600], log
    how = f"signal {ending['signal']}" if ending["signal"] else f"exit code {ending['exit']}"
    return Verdict.COMPILE_ERROR, f"the compiler ended with {how} and named no error", log
