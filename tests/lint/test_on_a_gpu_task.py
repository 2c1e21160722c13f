"""What lint says of a task on a GPU, and that it does not say more than it looked at."""

from __future__ import annotations

from ksearch.errors import EvaluatorError
from ksearch.evaluators import devices
from ksearch.lint import Status, lint, local_evaluator
from ksearch.tasks import load_task


def test_without_an_evaluator_everything_beyond_the_file_is_skipped():
    report = lint(load_task("trimul_gpu"))
    assert report.ok
    assert {r.check: r.status for r in report.rows} == {
        "task folder": Status.OK, "reference": Status.SKIPPED, "programs": Status.SKIPPED,
        "impostors": Status.SKIPPED,
    }  # fmt: skip
    assert "NumPy arrays only" in str(report)
    assert "no impostor programs on torch yet" in str(report)


def test_without_a_gpu_the_row_says_what_is_missing(monkeypatch):
    def absent(_: object) -> None:
        raise EvaluatorError("this task needs an NVIDIA GPU")

    monkeypatch.setattr(devices.GpuDevice, "require", absent)
    report = lint(load_task("trimul_gpu"), local_evaluator)
    (row,) = [r for r in report.rows if r.check == "programs"]
    assert (row.status, row.detail) == (Status.SKIPPED, "this task needs an NVIDIA GPU")
