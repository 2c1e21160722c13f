"""From how a process ended, or what it answered, to a verdict with a reason that a writer can act on."""

from __future__ import annotations

import re
import signal
from typing import Any

from ksearch.evaluators.processes import Cheated, Ended, Flooded, Overdue
from ksearch.types import Verdict

SIGNALS = {
    signal.SIGSEGV: "segmentation fault: an address outside the buffers was read or written",
    signal.SIGBUS: "bus error: a misaligned or vanished address was used",
    signal.SIGFPE: "arithmetic fault: usually an integer division by zero",
    signal.SIGILL: "illegal instruction: an instruction set that this CPU lacks, or a wild jump",
    signal.SIGABRT: "abort: an uncaught exception, a failed assertion or a damaged heap",
    signal.SIGSYS: "a system call that the sandbox forbids",
    signal.SIGXFSZ: "a file grew beyond the limit",
    signal.SIGTRAP: "trap: an impossible branch was reached",
}
_FAULTS = {
    "load": Verdict.COMPILE_ERROR, "entry": Verdict.COMPILE_ERROR, "syntax": Verdict.COMPILE_ERROR,
    "exception": Verdict.RUNTIME_ERROR, "memory": Verdict.OUT_OF_MEMORY,
    "shape": Verdict.WRONG_SHAPE, "dtype": Verdict.WRONG_DTYPE, "alias": Verdict.STALE_OUTPUT,
}  # fmt: skip
_NO_MEMORY = re.compile(r"bad_alloc|MemoryError|[Cc]annot allocate memory|out of memory")
HANG_SHARE = 0.3  # of the limit spent computing: below, it was waiting for something


class Failed(Exception):
    """A program's failure: data, not a crash."""

    def __init__(self, verdict: Verdict, reason: str, log: str = "", workload: str = "") -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.log, self.workload = verdict, reason, log, workload
        self.errors: dict[str, float] = {}


def of_fault(answer: dict[str, Any]) -> Failed:
    """The runner says that the program failed. If that is a lie, it harms only the program itself."""
    kind, text = str(answer.get("fault")), str(answer.get("text", ""))[:3000]
    if kind == "exit":
        clean = "SystemExit(0)" in text or "SystemExit(None)" in text
        verdict = Verdict.FORGED if clean else Verdict.RUNTIME_ERROR
        return Failed(verdict, f"the program ended the process itself: {text}")
    last = text.strip().splitlines()[-1] if text.strip() else "no further words"
    return Failed(_FAULTS.get(kind, Verdict.RUNTIME_ERROR), last, text)


def of_ending(error: Ended | Overdue | Cheated | Flooded, log: str) -> Failed:
    """What the outside saw of a runner that did not answer."""
    if isinstance(error, Cheated):
        return Failed(Verdict.FORGED, str(error), log)
    if isinstance(error, Flooded):
        return Failed(Verdict.RUNTIME_ERROR, f"{error}; nothing needs to be printed", log)
    if isinstance(error, Overdue):
        used = float(error.ending["cpu_s"])
        if used >= HANG_SHARE * error.limit_s:
            text = f"not done after {error.limit_s:.3g} s ({used:.1f} s of processor time)"
            return Failed(Verdict.TIMEOUT, text, log)
        text = f"hung: no answer for {error.limit_s:.3g} s while using {used:.1f} s of processor time"
        return Failed(Verdict.HANG, f"{text}; it waits for something that does not come", log)
    return _of_exit(error.ending, log)


def _of_exit(ending: dict[str, Any], log: str) -> Failed:
    number = ending["signal"]
    if number is None:
        if ending["exit"] == 0:
            return Failed(Verdict.FORGED, "the process ended with exit code 0 in the middle of its work", log)
        if _NO_MEMORY.search(log):
            return Failed(Verdict.OUT_OF_MEMORY, "allocation failed under the memory limit", log)
        text = f"the process ended with exit code {ending['exit']}{_last_words(log)}"
        return Failed(Verdict.RUNTIME_ERROR, text, log)
    if number == signal.SIGXCPU:
        return Failed(Verdict.TIMEOUT, "the limit of processor time was used up", log)
    if _NO_MEMORY.search(log):
        return Failed(Verdict.OUT_OF_MEMORY, "allocation failed under the memory limit", log)
    if number == signal.SIGKILL:
        return Failed(Verdict.OUT_OF_MEMORY, "killed by the system, which was out of memory", log)
    name = signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"
    meaning = SIGNALS.get(number, "no usual meaning")
    return Failed(Verdict.RUNTIME_ERROR, f"{name}: {meaning}{_last_words(log)}", log)


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return f"; its last words: {lines[-1][:200]}" if lines else ""
