"""One program in a runner of its own: starting it, giving it buffers, letting it run, reading its failures."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksearch.evaluators import jail, verdicts, wire
from ksearch.evaluators.builder import Built
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.jailed import OUTPUT_CAP_BYTES, Jailed
from ksearch.evaluators.linux import sealed
from ksearch.evaluators.processes import Broken, Cheated, Ended, Flooded, Overdue
from ksearch.types import Program, Verdict

if TYPE_CHECKING:
    from ksearch.evaluators.bench import Bench


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

    def renew(self) -> None:
        """The same program in a fresh process, without buffers; stopped.

        Raises:
            Failed: the program does not load any more.
        """
        self.close()
        self.sets.clear()
        self.old_seeds.clear()
        self.start()
        self.process.stop()

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
