"""Lint through this machine's real evaluator: right programs pass, impostors fail for their values."""

from __future__ import annotations

import pytest

from ksearch.evaluators.local import LocalEvaluator, Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.lint import LintReport, Status, lint, local_evaluator
from ksearch.lint.checks import _room
from ksearch.tasks import Task, bundled_tasks, load_task
from ksearch.types import Evaluation, Ratio, Verdict


def hasty(task: Task) -> LocalEvaluator:
    """Verdicts on values only need no long timing."""
    options = EvaluatorOptions(time_budget_s=0.05, min_rounds=2, max_rounds=4, confirm=False)
    return LocalEvaluator(task.spec, task.folder, options=options)


def statuses(report: LintReport, part: str) -> dict[str, Status]:
    return {r.check: r.status for r in report.rows if part in r.check}


def test_a_new_task_is_fit_to_be_searched(folder):
    report = lint(load_task(folder), local_evaluator)
    assert report.ok, str(report)
    assert statuses(report, "passes") == {"baseline passes": Status.OK, "the reference itself passes": Status.OK}
    refused = statuses(report, "impostor refused")
    assert len(refused) == 5
    assert set(refused.values()) == {Status.OK}


def test_a_wrong_baseline_is_a_row_with_its_reason(folder, edit):
    edit("* up[i];", "* up[i] * 1.01f;", "baseline.cpp")
    report = lint(load_task(folder), local_evaluator)
    assert [r.check for r in report.failures] == ["baseline passes"]
    assert "wrong_values" in report.failures[0].detail
    assert "loosen the tolerance" in report.failures[0].cure


def test_a_task_that_an_impostor_wins_fails(folder, edit):
    """Tolerances so wide that the last element of each row may be anything near."""
    edit("norm = 1e-5", "norm = 0.999")
    edit("atol = 1e-6", "atol = 1e3")
    report = lint(load_task(folder), hasty)
    failed = {r.check for r in report.failures}
    assert "impostor refused: the last element of each row left out" in failed
    assert all("Tighten the tolerance" in r.cure for r in report.failures if r.check.startswith("impostor"))


@pytest.mark.parametrize(("error", "status"), [(2e-5, Status.OK), (4e-5, Status.NOTE)])
def test_a_program_that_is_refused_by_chance_is_foreseen(folder, error, status):
    """A row softmax summed one by one used 40% of its tolerance as a rule, and more than all of it now and then."""
    passed = Evaluation("p", Verdict.PASSED, "time", latency_ms=1.0, speedup=Ratio(1.0, 0.9, 1.1))
    record = {"errors": {"small": {"norm": 1e-7}, "long": {"norm": error}}}
    (row,) = _room("baseline", Measured(passed, record), 1e-4)
    assert (row.check, row.status) == ("baseline has room", status)
    assert "of 0.0001 at most, long" in row.detail
    assert ("by chance" in row.cure) == (status is Status.NOTE)


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [n for n in bundled_tasks() if load_task(n).spec.device == "cpu"])
def test_a_bundled_task_is_fit_to_be_searched(name):
    report = lint(load_task(name), local_evaluator)
    assert report.ok, str(report)
    assert not statuses(report, "programs and impostors"), "the evaluator was skipped"
    assert set(statuses(report, "has room").values()) == {Status.OK}
