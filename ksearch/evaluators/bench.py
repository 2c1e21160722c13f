"""What stays alive between candidates: template, oracle, builder, harness."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ksearch.definition import TaskSpec
from ksearch.evaluators import leftovers, machine, wire
from ksearch.evaluators.builder import Builder, Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.devices import Ceilings, architecture_flags, device_of, runtime_flags
from ksearch.evaluators.jail import JailSpec
from ksearch.evaluators.linux import sealed
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import (
    FIRST_UID,
    UIDS,
    Broken,
    Service,
    clean_environment,
    visible_paths,
)

_SKIPS = {
    Defence.NAMESPACES: "namespaces", Defence.LANDLOCK: "landlock", Defence.SECCOMP: "seccomp",
    Defence.LIMIT_MEMORY: "limit_memory", Defence.LIMIT_PROCESSES: "limit_processes",
    Defence.LIMIT_FILES: "limit_files",
}  # fmt: skip
_BUILD_PROCESSES = 64


class Bench:
    """One per evaluator."""

    def __init__(self, spec: TaskSpec, folder: Path, options: EvaluatorOptions) -> None:
        self.spec, self.folder, self.options = spec, folder, options
        self.device = device_of(spec, options.gpu)
        self.device.require()
        leftovers.sweep()
        self.home = Path(tempfile.mkdtemp(prefix=leftovers.prefix("ksearch-")))
        self.home.chmod(0o755)
        self.numbers = itertools.count(secrets.randbelow(UIDS))
        cores = options.cores or machine.cores()[0]
        count = len(cores)
        own = max(0, count - self.device.cores(count, spec.threads))
        self.timing_cores, self.other_cores = cores[own:] or cores, cores[:own] or cores
        passed_on = self.device.environment()
        environment = {**clean_environment(spec.threads), **passed_on}
        if not options.on(Defence.ENVIRONMENT):
            environment = {**os.environ, **environment}
        self.template = Service(self.device.template, environment)
        self.oracle = Service(self.device.oracle, {**clean_environment(1), **passed_on})
        self.visible = visible_paths()
        self.builder = Builder(self.template, options, self.jail, spec.threads)
        self.memory_bytes = 3 * sum(self._set_bytes(w.axes) for w in spec.workloads) + (512 << 20)
        self.harness: Built | None = None
        self._ceilings: Ceilings | None = None

    def open(self) -> None:
        """Load the task into the oracle and build the harness.

        Raises:
            EvaluatorError: the task's reference cannot be loaded.
            Broken: a process died.
        """
        os.sched_setaffinity(self.oracle.process.pid, self.other_cores)
        fd = sealed(json.dumps(self.spec.to_dict()).encode())
        try:
            order: wire.Message = {"do": "open", "folder": str(self.folder.resolve())}
            if self.spec.device == "cpu":
                order["cores"] = [*self.other_cores, *self.timing_cores]
            self.oracle.ask(order, [fd])
        finally:
            os.close(fd)
        self.device.about, _ = self.oracle.ask({"do": "about"})
        if self.spec.device == "cpu":
            self._open_harness()
        else:
            nvcc = self.options.cuda_compiler
            self.builder.cuda_flags = (*architecture_flags(self.device.about), *runtime_flags(self.device.about, nvcc))

    def _open_harness(self) -> None:
        self.harness = self.builder.harness()
        if self.harness is not None:
            fd = sealed(self.harness.data)
            try:
                self.oracle.ask({"do": "harness"}, [fd])
            finally:
                os.close(fd)

    @property
    def lease(self) -> Path | None:
        """Lock file for timing; None: the machine's."""
        return self.options.lease or self.device.lease()

    @property
    def flushes(self) -> bool:
        """The oracle puts buffers out of all caches before each turn, so that no runner has to be trusted with it."""
        wanted = self.options.on(Defence.CACHE_FLUSH) and self.options.on(Defence.OUTSIDE_FLUSH)
        return wanted and self.harness is not None

    def sets_bytes(self, subjects: int) -> int:
        """All buffer sets of one runner and workload together, with so many timed at once."""
        return self.device.sets_bytes(subjects, sum(w.timed for w in self.spec.workloads))

    def healthy(self) -> None:
        """After a process has ended badly: does the GPU still compute?

        Raises:
            Broken: it does not.
        """
        if self.spec.device == "cuda":
            try:
                self.oracle.ask({"do": "about"}, timeout_s=30.0)
            except Broken as error:
                raise Broken(f"GPU quarantined, it fails a known sum after an abnormal exit: {error}") from error

    def _set_bytes(self, axes: Mapping[str, int]) -> int:
        names = self.spec.names(axes)
        return sum(t.size_bytes(names) for t in (*self.spec.inputs, *self.spec.outputs))

    def set_bytes(self, axes: Mapping[str, int]) -> int:
        """Bytes of all inputs and outputs of one call."""
        return self._set_bytes(axes)

    def jail(self, folder: str, build: bool = False) -> JailSpec:
        number = next(self.numbers)
        root = os.geteuid() == 0 and self.options.on(Defence.UID_DROP)
        spec, limits = self.spec, self.spec.limits
        skip = [word for defence, word in _SKIPS.items() if not self.options.on(defence)]
        if self.options.sandbox != "auto":
            skip.append("namespaces")
        if self.options.sandbox == "limits":
            skip += ["landlock", "seccomp"]
        pinned = self.options.on(Defence.PINNED_CPU)
        stages = limits.smoke_s + (limits.check_s + limits.time_s) * len(spec.workloads)
        compiler = shutil.which(self.builder.compiler_of(spec)) if build else None
        above = (str(Path(compiler).resolve().parents[1]),) if compiler else ()
        disk = limits.disk_bytes if self.options.on(Defence.LIMIT_FILES) else 1 << 40
        return JailSpec(
            folder=folder, uid=FIRST_UID + number % UIDS if root else None,
            processes=_BUILD_PROCESSES if build else self.device.processes(spec.threads), build=build,
            threads=spec.threads > 1 or spec.device == "cuda", device="cpu" if build else spec.device,
            compiles=not build and bool(self.device.late_compilers),
            memory_bytes=limits.memory_bytes + (0 if build else self.memory_bytes + self.device.host_bytes),
            file_bytes=max(disk, 256 << 20) if build else disk,
            cpu_s=int(limits.build_s * 2 if build else stages * spec.threads * 2) + 10,
            cpus=(self.other_cores if build else self.timing_cores) if pinned else (),
            visible=(*self.visible, *above), skip=tuple(skip),
        )  # fmt: skip

    def ceilings(self, *, again: bool = False) -> Ceilings:
        """What the device can do at most; measured a few times per machine. `again`: now, and the best counts."""
        if self._ceilings is None or again:
            folder = machine.cache_folder(self.options.cache)
            found = None if again else self.device.cached_ceilings(folder, self.spec)
            if found is None:
                answer, _ = self.oracle.ask({"do": "ceilings"})
                found = self.device.keep_ceilings(folder, answer, self.spec)
            self._ceilings = found
        return self._ceilings

    def close(self) -> None:
        self.template.close()
        self.oracle.close()
        shutil.rmtree(self.home, ignore_errors=True)
