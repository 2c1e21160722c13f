"""W&B and MLflow as they are: offline, in a folder. Installed by the long check only: about 200 MB."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksearch.drivers import drive
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.service import tracking
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk
from ksearch.trackers.metrics import stable_id

pytestmark = pytest.mark.heavy


def searched(evaluations: int = 6) -> Run:
    run = Run.create(open_store(":memory:"), "fake-1", SearchConfig(Budget(evaluations)), {"task": "softmax"})
    drive(run, fake_desk(1), sleep=lambda _: None)
    return run


def test_mlflow_keeps_parameters_curves_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed: about 120 MB")
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run, said = searched(), []
    for _ in range(2):  # told twice, kept once
        assert tracking.track(run, "mlflow", said.append), said
    client = MlflowClient()
    (found,) = client.search_runs([client.get_experiment_by_name("ksearch").experiment_id])
    assert found.info.run_name == "fake-1"
    assert found.info.status == "FINISHED"
    assert found.data.params["budget.evaluations"] == "6"
    assert found.data.tags["ksearch.ended"] == "budget: evaluations"
    best = run.state.evaluations[run.state.best_id].speedup.value
    assert found.data.metrics["best_speedup"] == pytest.approx(best)
    history = client.get_metric_history(found.info.run_id, "passed")
    assert [metric.step for metric in history] == [1, 2, 3, 4, 5, 6]
    assert all(abs(metric.timestamp / 1000 - run.state.last_at) < 600 for metric in history)


def test_mlflow_carries_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed: about 120 MB")
    from mlflow.tracking import MlflowClient

    from ksearch.trackers import feed_all
    from ksearch.trackers.mlflow import MlflowTracker

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    log = searched().log()
    for count in (len(log) // 2, len(log)):
        feed_all("fake-1", log[:count], MlflowTracker("fake-1", 5.0).take)
    client = MlflowClient()
    (found,) = client.search_runs([client.get_experiment_by_name("ksearch").experiment_id])
    assert [m.step for m in client.get_metric_history(found.info.run_id, "passed")] == [1, 2, 3, 4, 5, 6]


def test_wandb_offline_keeps_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the extra `wandb` is not installed: about 60 MB")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    run, said = searched(), []
    assert tracking.track(run, "wandb", said.append), said
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    id = stable_id("fake-1", run.store.run("fake-1").created_at)
    (file,) = folder.glob("*.wandb")
    assert file.name == f"run-{id}.wandb"
    kept = file.read_bytes()
    for word in (b"best_speedup", b"budget.evaluations", b"verdict", run.state.best_id.encode()):
        assert word in kept
