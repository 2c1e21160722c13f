"""Runs the cheats, their twins and the proofs in the real evaluator."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ksearch.errors import BadInput, EvaluatorError
from ksearch.evaluators import machine
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.devices import GpuDevice
from ksearch.evaluators.local import LocalEvaluator
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.protocol import Lost
from ksearch.redteam.cheat import GAIN, LOOT, Cheat
from ksearch.redteam.gpu.spec import FOLDER as GPU_FOLDER
from ksearch.redteam.gpu.spec import variant as gpu_variant
from ksearch.redteam.gpu.table import CHEATS as GPU_CHEATS
from ksearch.redteam.spec import FOLDER, variant
from ksearch.redteam.table import CHEATS
from ksearch.types import Evaluation, Verdict

KEY = "KSEARCH_REDTEAM_API_KEY"
WORKERS = 3  # one builds while another is timed
TRIES = 5  # on a busy machine


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one program, and whether that is what had to."""

    ok: bool
    verdict: str
    stage: str = ""
    speedup: float | None = None
    loot: str = ""
    reason: str = ""
    seconds: float = 0.0
    tries: int = 1

    def __str__(self) -> str:
        gain = f" x{self.speedup:.1f}" if self.speedup else ""
        return f"{self.verdict}{gain}" + (f", {self.loot}" if self.loot else "")


@dataclass(slots=True)
class Row:
    """One cheat with all that was tried. None: not tried, or not possible here; `skipped` says why."""

    cheat: Cheat
    caught: Seen | None = None
    twin: Seen | None = None
    proof: Seen | None = None
    skipped: str = ""

    @property
    def left_out(self) -> bool:
        """Nothing was tried, so nothing is said."""
        return self.caught is None

    @property
    def ok(self) -> bool:
        """All that was tried is as it has to be; of a row that was left out, False."""
        return not self.left_out and all(seen is None or seen.ok for seen in (self.caught, self.twin, self.proof))


class _Group:
    """An evaluator shared by several programs; the last one closes it."""

    def __init__(self, evaluator: LocalEvaluator) -> None:
        self.evaluator, self.left, self.lock = evaluator, 0, threading.Lock()

    def __enter__(self) -> LocalEvaluator:
        return self.evaluator

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.evaluator.close()


def run_redteam(
    only: Sequence[str] | None = None, *, proofs: bool = True, twins: bool = True, sandbox: str = "auto",
    told: Callable[[Row], None] | None = None,
) -> list[Row]:  # fmt: skip
    """Every cheat (or those named) in the evaluator; with `twins` and `proofs` each one's twin and proof too.

    Args:
        sandbox: rung of the sandbox ladder, as in `EvaluatorOptions`.
        told: called with each row when it is complete, from several threads.

    Raises:
        BadInput: no cheat of that name.
    """
    cheats = chosen(only)
    with _bait() as cache, _Suite(cache, sandbox, twins=twins, proofs=proofs) as suite:
        for cheat in cheats:
            suite.expect(cheat)

        def row_of(cheat: Cheat) -> Row:
            row = suite.row(cheat)
            if told is not None:
                told(row)
            return row

        with ThreadPoolExecutor(WORKERS) as pool:
            rows = dict(zip(cheats, pool.map(lambda c: None if c.alone else row_of(c), cheats), strict=True))
        return [rows[cheat] or row_of(cheat) for cheat in cheats]


def chosen(only: Sequence[str] | None) -> list[Cheat]:
    """The cheats of these names, all where none is given.

    Raises:
        BadInput: no cheat of that name.
    """
    if not only:
        return [*CHEATS, *GPU_CHEATS]
    known = {cheat.name: cheat for cheat in (*CHEATS, *GPU_CHEATS)}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise BadInput(f"no cheat is called {unknown[0]!r}; there are: {', '.join(known)}")
    return [known[name] for name in only]


class _Suite:
    """The evaluators in use: one for each variant of the task and set of defences that are off."""

    def __init__(self, cache: Path, sandbox: str, *, twins: bool, proofs: bool) -> None:
        self.cache, self.sandbox, self.twins, self.proofs = cache, sandbox, twins, proofs
        self.groups: dict[tuple[str, str, frozenset[Defence]], _Group] = {}

    def __enter__(self) -> _Suite:
        return self

    def __exit__(self, *_: object) -> None:
        for group in self.groups.values():
            group.evaluator.close()

    def expect(self, cheat: Cheat) -> None:
        """Count what will be measured where, so that an evaluator is closed when nobody needs it any more."""
        if _impossible(cheat):
            return
        for disabled in self._steps(cheat):
            self._group(cheat, disabled).left += 1

    def _steps(self, cheat: Cheat) -> list[frozenset[Defence]]:
        with_proof = self.proofs and cheat.defences and not _unprovable(cheat)
        off = [frozenset(cheat.defences)] if with_proof else []
        none: frozenset[Defence] = frozenset()
        return [none, *([none] if self.twins else []), *off]

    def _group(self, cheat: Cheat, disabled: frozenset[Defence]) -> _Group:
        key = (cheat.device, cheat.variant, disabled)
        if key not in self.groups:
            on_gpu = cheat.device == "cuda"
            options = EvaluatorOptions(
                time_budget_s=0.2, min_rounds=6, max_rounds=16, confirm_budget_s=0.1, outside_batch_ms=20.0,
                sandbox=self.sandbox, cache=self.cache, disabled=disabled, testing=bool(disabled),
                confirm=not (on_gpu and disabled),  # where every evaluator takes seconds to start
            )  # fmt: skip
            spec, folder = (gpu_variant if on_gpu else variant)(cheat.variant), GPU_FOLDER if on_gpu else FOLDER
            self.groups[key] = _Group(LocalEvaluator(spec, folder, options=options))
        return self.groups[key]

    def row(self, cheat: Cheat) -> Row:
        row = Row(cheat, skipped=_impossible(cheat))
        if row.skipped:
            return row
        row.caught = self._look(cheat, frozenset(), stopped)
        if self.twins:
            row.twin = self._look(cheat, frozenset(), honest, twin=True)
        if self.proofs:
            row.skipped = cheat.because or _unprovable(cheat)
            if not row.skipped:
                row.proof = self._look(cheat, frozenset(cheat.defences), succeeded)
        return row

    def _look(
        self, cheat: Cheat, disabled: frozenset[Defence], right: Callable[[Cheat, Evaluation], bool], *,
        twin: bool = False,
    ) -> Seen:  # fmt: skip
        with self._group(cheat, disabled) as evaluator:
            for tries in range(1, TRIES + 1):
                found = evaluator.evaluate(cheat.program(twin=twin)).evaluation
                seen = _seen(cheat, found, right, tries)
                # On a busy machine an honest time may be doubted, and an evaluator's process may die. What a cheat
                # has once got through is not asked again.
                if seen.ok or (right is stopped and not isinstance(found, Lost) and succeeded(cheat, found)):
                    break
            return seen


def _seen(
    cheat: Cheat, found: Evaluation | Lost, right: Callable[[Cheat, Evaluation], bool], tries: int
) -> Seen:  # fmt: skip
    if isinstance(found, Lost):
        return Seen(False, "lost", reason=found.reason, tries=tries)
    return Seen(
        right(cheat, found), str(found.verdict), found.stage, found.speedup.value if found.speedup else None,
        _loot(found), found.reason, found.seconds, tries,
    )  # fmt: skip


def stopped(cheat: Cheat, found: Evaluation) -> bool:
    """Caught, barren or fenced: what has to become of a cheat."""
    if cheat.saves and found.speedup is not None and found.speedup.value >= GAIN:
        return False
    return found.verdict in cheat.verdicts and found.stage in cheat.stages and not _loot(found)


def succeeded(cheat: Cheat, found: Evaluation) -> bool:
    """What its author hoped for: it passes, and saves time, or gets hold of what it is after."""
    if cheat.steals:
        return bool(_loot(found))
    gained = found.speedup is not None and found.speedup.value >= GAIN
    return found.verdict is Verdict.PASSED and (gained or not cheat.saves)


def honest(_: Cheat, found: Evaluation) -> bool:
    return found.verdict is Verdict.PASSED and not _loot(found)


def _loot(found: Evaluation) -> str:
    _, mark, rest = found.log.partition(LOOT)
    return rest.partition("\n")[0].strip() if mark else ""


def _impossible(cheat: Cheat) -> str:
    if cheat.x86 and os.uname().machine != "x86_64":
        return "needs an x86-64 processor"
    return _no_gpu() if cheat.device == "cuda" else ""


@cache
def _no_gpu() -> str:
    try:
        GpuDevice().require()
    except EvaluatorError:
        return "needs an NVIDIA GPU, and torch"
    return ""


def _unprovable(cheat: Cheat) -> str:
    if cheat.root_proof and os.geteuid() != 0:
        return "only an administrator's evaluator can be harmed so"
    cores = machine.cores()[1]
    if cores < cheat.cores:
        return f"needs {cheat.cores} cores, {cores} here"
    return ""


@contextmanager
def _bait() -> Iterator[Path]:
    """What thieves look for: a key in the environment, a private file, a listening port, a cache of programs."""
    folder = Path(tempfile.mkdtemp(prefix="ksearch-redteam-"))
    os.environ[KEY] = "a-key-that-no-program-may-see"
    try:
        (folder / "redteam-secret").write_text("a secret that no program may read")
        (folder / "redteam-secret").chmod(0o600)
        cache = folder / "cache"
        cache.mkdir()
        with socket.create_server(("127.0.0.1", 0)):
            yield cache
    finally:
        del os.environ[KEY]
        shutil.rmtree(folder, ignore_errors=True)
