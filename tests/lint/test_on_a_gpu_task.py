"""What lint says of a task on a GPU, and that it does not say more than it looked at."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

from ksearch.definition import Floor
from ksearch.errors import EvaluatorError
from ksearch.evaluators import devices
from ksearch.evaluators.local import Measured
from ksearch.lint import Row, Status, checks, lint
from ksearch.tasks import load_task
from ksearch.types import Evaluation, Program, Ratio, Verdict


def test_without_a_gpu_only_the_folder_and_the_floor_are_looked_at(monkeypatch):
    monkeypatch.setattr(devices.GpuDevice, "require", absent)
    report = lint(load_task("trimul_gpu"))
    assert report.ok
    assert {r.check: r.status for r in report.rows} == {
        "task folder": Status.OK, "floor is possible": Status.OK, "reference, programs and impostors": Status.SKIPPED,
    }  # fmt: skip
    assert "not run: the reference by itself, 2 programs, 9 impostors, 12 inputs" in str(report)


def absent(_: object) -> None:
    raise EvaluatorError("this task needs an NVIDIA GPU")


def test_without_an_evaluator_the_reference_is_looked_at_by_itself(monkeypatch):
    rows = judged(monkeypatch, None)
    assert rows["reference runs"] is Status.OK
    assert rows["programs and impostors"] is Status.SKIPPED


def test_nothing_is_judged_by_a_reference_that_is_wrong(monkeypatch):
    rows = judged(monkeypatch, lambda _: RIGHT, Row("reference runs", Status.FAIL, "NaN", "cure"))
    assert rows["programs and impostors"] is Status.SKIPPED
    assert not any(check.startswith("impostor") for check in rows)


def test_a_floor_beyond_what_the_arrays_hold_fails_without_a_gpu():
    task = load_task("trimul_gpu")
    task = replace(task, spec=replace(task.spec, floor=Floor("1e15", "1")))
    (row,) = lint(task).failures
    assert (row.check, row.cure[:16]) == ("floor is possible", "Count each array")


RIGHT = Evaluation("p", Verdict.PASSED, stage="time", latency_ms=1.0, speedup=Ratio(1, 1, 1))
WRONG = Evaluation("p", Verdict.WRONG_VALUES, "7 of 9 elements wrong", stage="smoke")
RAISED = Evaluation("p", Verdict.RUNTIME_ERROR, "IndexError", stage="smoke")


def judged(monkeypatch, fate, reference=Row("reference runs", Status.OK)) -> dict[str, Status]:  # noqa: B008
    """What lint makes of an evaluator that gives each program the fate that `fate(program)` says."""

    def factory(_: object) -> object:
        return nullcontext(SimpleNamespace(evaluate=lambda p: Measured(fate(p), {})))

    monkeypatch.setattr(devices.GpuDevice, "require", lambda _: None)
    monkeypatch.setattr(checks, "probe_rows", lambda *_: iter([reference]))
    return {r.check: r.status for r in lint(load_task("trimul_gpu"), fate and factory).rows}  # type: ignore[arg-type]


def honest(program: Program) -> bool:
    """Baseline, strong programs and the reference as it is."""
    text = program.sources.get("impostor.py", 'IGNORED = ""\n            pass\n')
    return 'IGNORED = ""\n' in text and "            pass\n" in text


def test_where_everything_wrong_is_refused_the_task_is_fit(monkeypatch):
    rows = judged(monkeypatch, lambda p: RIGHT if honest(p) else WRONG)
    assert set(rows.values()) == {Status.OK}
    assert {"baseline passes", "strong triton passes", "the reference itself passes", "depends on mask"} <= set(rows)
    assert "impostor refused: reference plus twice the tolerance" in rows
    assert sum(c.startswith("impostor refused") for c in rows) == 8
    assert sum(c.startswith("depends on") for c in rows) == 12


def test_where_everything_passes_each_impostor_and_each_input_is_a_failure(monkeypatch):
    rows = judged(monkeypatch, lambda _: RIGHT)
    assert [s for c, s in rows.items() if c.startswith(("impostor", "depends"))] == [Status.FAIL] * 20


def test_a_reference_that_does_not_run_on_other_values_shows_nothing(monkeypatch):
    rows = judged(monkeypatch, lambda p: RIGHT if honest(p) else RAISED)
    assert rows["depends on mask"] is Status.SKIPPED
    assert rows["impostor refused: zeros"] is Status.FAIL
