"""Many candidates in a row, every fourth hostile: nothing piles up. KSEARCH_CANDIDATES sets how many (default 40)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ksearch.evaluators.gpu import nvml
from ksearch.evaluators.local import LocalEvaluator
from ksearch.types import Evaluation, Program, Verdict
from tests.gpu.conftest import GOOD, python

HOSTILE = (
    "    import os\n    os._exit(0)\n",
    "    import ctypes\n    ctypes.string_at(8)\n",
    "    return x[torch.full((5,), 1 << 40, device='cuda')]\n",
    "    kept = [torch.empty(torch.cuda.mem_get_info()[0] - (96 << 20), dtype=torch.uint8, device='cuda')]\n"
    "    globals()['kept'] = globals().get('kept', kept)\n" + GOOD,
    "    raise MemoryError('mine')\n",
)


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def below(pid: int) -> int:
    """Living processes that descend from `pid`."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    count, known = 0, {pid}
    while len(known) > count:
        count = len(known)
        known |= {child for child, parent in parents.items() if parent in known}
    return count - 1


def usage(evaluator: LocalEvaluator) -> dict[str, int]:
    time.sleep(0.3)
    evaluator.bench.healthy()
    oracle, template = evaluator.bench.oracle.process.pid, evaluator.bench.template.process.pid
    return {
        "processes": below(os.getpid()), "own": descriptors(os.getpid()), "oracle": descriptors(oracle),
        "template": descriptors(template), "oracle_mb": resident_bytes(oracle) >> 20,
        "template_mb": resident_bytes(template) >> 20, "gpu_free_mb": nvml.gpus()[0]["free_bytes"] >> 20,
        "folders": len(list(evaluator.bench.home.iterdir())),
    }  # fmt: skip


@pytest.mark.timeout(1200)
def test_nothing_piles_up(evaluator: LocalEvaluator, judge: Callable[[Program], Evaluation]) -> None:
    count, before, start = int(os.environ.get("KSEARCH_CANDIDATES", "40")), {}, time.monotonic()
    for number in range(count):
        if number == 8:
            before = usage(evaluator)
        bad = number % 4 == 3
        found = judge(python(f"    # {number}\n" + (HOSTILE[number // 4 % len(HOSTILE)] if bad else GOOD)))
        assert (found.verdict is Verdict.PASSED) == (not bad), f"candidate {number}: {found.verdict}: {found.reason}"
    took, after = (time.monotonic() - start) / count, usage(evaluator)
    print(f"{count} candidates, {took:.2f} s each; after 8: {before}; at the end: {after}")
    for name in ("processes", "own", "oracle", "template", "folders"):
        assert after[name] <= before[name], (name, before, after)
    assert after["oracle_mb"] - before["oracle_mb"] < 200, (before, after)
    assert after["template_mb"] - before["template_mb"] < 20, (before, after)
    assert before["gpu_free_mb"] - after["gpu_free_mb"] < 200, (before, after)
