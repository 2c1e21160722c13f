"""`ksearch lint` on tasks for GPUs: what is right passes, every impostor is refused, every input counts."""

from __future__ import annotations

import pytest

from ksearch.lint import Status, lint, local_evaluator
from ksearch.tasks import bundled_tasks, load_task
from tests.gpu.conftest import HERE

BUNDLED = [name for name in bundled_tasks() if load_task(name).spec.device == "cuda"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [str(HERE / "tasks" / "softmax"), str(HERE / "tasks" / "matmul"), *BUNDLED])
def test_a_sound_task_is_found_to_be_sound(name: str) -> None:
    report = lint(load_task(name), local_evaluator, on_row=lambda row: print(row, flush=True))
    assert report.ok, report
    print(f"{report.seconds:.1f} s")
    skipped = [r.check for r in report.rows if r.status is Status.SKIPPED]
    assert skipped == [], report
    assert {"reference runs", "reference is deterministic", "awkward cases"} <= {r.check for r in report.rows}
    assert sum(r.check.startswith("impostor refused") for r in report.rows) >= 7
