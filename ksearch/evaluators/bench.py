"""What stays alive between candidates: template, oracle, builder, harness. And the handle on one program."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ksearch.definition import TaskSpec
from ksearch.evaluators import jail, linux, machine, verdicts, wire
from ksearch.evaluators.builder import Builder, Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.devices import Ceilings, architecture_flags, device_of, runtime_flags
from ksearch.evaluators.jail import JailSpec
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.processes import (
    FIRST_UID,
    OUTPUT_CAP_BYTES,
    UIDS,
    Broken,
    Cheated,
    Ended,
    Flooded,
    Jailed,
    Overdue,
    Service,
    clean_environment,
    visible_paths,
)
from ksearch.types import Program, Verdict

_SKIPS = {
    Defence.NAMESPACES: "namespaces", Defence.LANDLOCK: "landlock", Defence.SECCOMP: "seccomp",
    Defence.LIMIT_MEMORY: "limit_memory", Defence.LIMIT_PROCESSES: "limit_processes",
    Defence.LIMIT_FILES: "limit_files",
}  # fmt: skip
_BUILD_PROCESSES = 64


def sealed(data: bytes) -> int:
    """A memfd with these bytes that nobody can change; the caller closes it."""
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    seals = linux.F_SEAL_SEAL | linux.F_SEAL_SHRINK | linux.F_SEAL_GROW | linux.F_SEAL_WRITE
    fcntl.fcntl(fd, linux.F_ADD_SEALS, seals)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Bench:
    """One per evaluator."""

    def __init__(self, spec: TaskSpec, folder: Path, options: EvaluatorOptions) -> None:
        self.spec, self.folder, self.options = spec, folder, options
        self.device = device_of(spec)
        self.device.require()
        self.home = Path(tempfile.mkdtemp(prefix="ksearch-"))
        self.home.chmod(0o755)
        self.numbers = itertools.count(secrets.randbelow(UIDS))
        cores, count = machine.cores()
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


@dataclass(slots=True)
class Subject:
    """One program in a runner of its own."""

    bench: Bench
    program: Program
    built: Built
    key: str
    process: Jailed = field(init=False)
    folder: Path = field(init=False)
    sets: dict[str, int] = field(default_factory=dict)  # key of a group -> number of sets
    started_s: float = 0.0
    old_seeds: dict[str, Any] = field(default_factory=dict)
    failed: bool = False  # it ended by itself, had to be killed, or a call of it failed

    def start(self) -> None:
        """Fork a runner and load the program.

        Raises:
            Failed: the program does not load.
        """
        start = time.monotonic()
        options, bench = self.bench.options, self.bench
        spec = bench.jail(folder="")
        self.folder = bench.home / f"run-{secrets.token_hex(6)}"
        self.folder.mkdir(mode=0o700)
        if spec.uid is not None:
            os.chown(self.folder, spec.uid, spec.uid)
        spec = replace(spec, folder=str(self.folder))
        self.process = Jailed(
            bench.template, spec,
            skip=() if options.on(Defence.CLOSED_DESCRIPTORS) else ("closed_descriptors",),
            output_cap_bytes=OUTPUT_CAP_BYTES if options.on(Defence.OUTPUT_CAP) else None,
            reply_cap_bytes=wire.MAX_REPLY_BYTES if options.on(Defence.REPLY_CAP) else None,
            tokens=options.on(Defence.REPLY_TOKEN),
        )  # fmt: skip
        if bench.spec.device == "cuda":
            self._start_cuda()
        self._load()
        self.started_s = time.monotonic() - start

    def _start_cuda(self) -> None:
        """Before the program is there: whatever fails now is ours."""
        try:
            self.ask({"do": "start"}, (), 60.0)
        except verdicts.Failed as failed:
            raise Broken(f"a runner cannot use the GPU: {failed.reason}; {failed.log[-500:]}") from failed

    def _load(self) -> None:
        file, _, name = self.program.entry_point.partition("::")
        data = self.built.data or json.dumps(dict(self.program.sources)).encode("utf-8", "surrogatepass")
        fds = [sealed(data)]
        harness = self.bench.harness
        if harness is not None:
            fds.append(sealed(harness.data))
        order = {
            "do": "load", "language": self.program.language, "file": file, "name": name,
            "harness": harness is not None,
        }  # fmt: skip
        try:
            self.ask(order, fds, self.bench.spec.limits.smoke_s)
        except verdicts.Failed as failed:
            if "no symbol" in failed.reason:
                found = ", ".join(s for s in self.built.symbols.exported[:12]) or "none"
                hint = 'is it declared extern "C"?'
                failed.reason = f"entry point {name!r} is not exported ({hint}); exported: {found}"
            raise
        finally:
            for fd in fds:
                os.close(fd)

    def ask(self, order: wire.Message, fds: Sequence[int] = (), limit_s: float = 20.0) -> wire.Message:
        """One order to the runner.

        Raises:
            Failed: the program's failure, whatever form it took.
        """
        try:
            answer = self.process.ask(order, fds, limit_s)
        except (Ended, Overdue, Cheated, Flooded) as error:
            self.failed = True
            raise verdicts.of_ending(error, self.process.log) from None
        if "fault" in answer:
            self.failed = True
            raise verdicts.of_fault(answer)
        return answer

    @property
    def accountable(self) -> bool:
        """It can start neither threads nor processes: all of its work is in its own processor time."""
        spec, alone = self.bench.spec, "seccomp" in self.process.rungs
        return alone and spec.device == "cpu" and spec.threads == 1 and self.bench.options.on(Defence.STOP_OFF_TURN)

    def map(self, group: str, axes: Mapping[str, int], count: int) -> None:
        """See to it that this runner has `count` buffer sets under `group`."""
        key, have = f"{self.key}/{group}", self.sets.get(group, 0)
        if have < count:
            self.process.resume()
        while have < count:
            more = min(count - have, 32)
            answer, fds = self.bench.oracle.ask({"do": "sets", "key": key, "axes": dict(axes), "count": more})
            try:
                self.ask({"do": "map", "key": group, **answer}, fds)
            finally:
                for fd in fds:
                    os.close(fd)
            have += more
            self.sets[group] = have

    def run(self, group: str, sets: Sequence[int], *, flush: bool, limit_s: float) -> list[int]:
        """Call once per set: nanoseconds per call, as the runner says."""
        answer = self.ask({"do": "run", "key": group, "sets": list(sets), "flush": flush}, (), limit_s)
        ns = answer.get("ns")
        if not isinstance(ns, list) or len(ns) != len(sets) or any(type(n) is not int or n < 0 for n in ns):
            self.process.kill()
            raise verdicts.Failed(Verdict.FORGED, "an answer without the times of the calls")
        if self.program.language in ("python", "triton"):
            exact = self.bench.options.on(Defence.EXACT_TYPE)
            self.ask({"do": "collect", "exact": exact}, (), limit_s)
        return ns

    @property
    def log(self) -> str:
        return self.process.log[-4000:]

    @property
    def sandbox(self) -> str:
        return jail.level(self.process.rungs)

    def forget(self, group: str) -> None:
        """Give the buffers of `group` back; what seeds they last had is remembered."""
        if group not in self.sets:
            return
        answer, _ = self.bench.oracle.ask({"do": "seeds", "key": f"{self.key}/{group}"})
        self.old_seeds[group] = answer["seeds"]
        stopped = self.process.stopped
        self.process.resume()
        self.ask({"do": "drop", "key": group})
        if stopped:
            self.process.stop()
        del self.sets[group]
        self.bench.oracle.ask({"do": "drop", "key": f"{self.key}/{group}"})

    def seeds(self) -> dict[str, Any]:
        """Of everything it was last given. Kills the runner first: it must not learn them."""
        self.process.kill()
        found = dict(self.old_seeds)
        for group in self.sets:
            answer, _ = self.bench.oracle.ask({"do": "seeds", "key": f"{self.key}/{group}"})
            found[group] = answer["seeds"]
        return found

    def close(self) -> None:
        try:
            if hasattr(self, "process"):
                self.process.close()
        finally:
            if hasattr(self, "folder"):
                shutil.rmtree(self.folder, ignore_errors=True)
            self.bench.oracle.ask({"do": "drop", "key": self.key})
