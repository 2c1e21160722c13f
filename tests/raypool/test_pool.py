"""What the pool makes of a cluster before anything runs; no Ray is needed here."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ksearch.errors import EvaluatorError
from ksearch.evaluators import raypool
from ksearch.evaluators.raypool import RayPool
from ksearch.evaluators.raywork import packed, unpacked
from ksearch.tasks import load_task

TASK = load_task("softmax")
GPU_SPEC = load_task(Path(__file__).parents[1] / "gpu" / "tasks" / "softmax").spec


def node(gpus: int, model: str = "", cpus: int = 4, alive: bool = True) -> dict[str, Any]:
    named = {f"accelerator_type:{model}": 1.0} if model else {}
    return {"Alive": alive, "Resources": {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {}), **named}}


def choose(*nodes: dict[str, Any], **given: Any) -> tuple[str | None, int]:
    return RayPool(GPU_SPEC, TASK.folder, **given)._choose(nodes)


def test_all_gpus_of_the_one_model_are_used() -> None:
    assert choose(node(0), node(8, "H200"), node(4, "H200"), node(8, "H200", alive=False)) == ("H200", 12)
    assert choose(node(2)) == (None, 2)
    assert choose(node(8, "H200"), gpus=3) == ("H200", 3)


def test_a_mixed_cluster_is_filtered_by_model() -> None:
    nodes = node(8, "H200"), node(2, "A100")
    with pytest.raises(EvaluatorError, match=r"8 H200, 2 A100.*never compared: choose one with --gpu-model H200"):
        choose(*nodes)
    assert choose(*nodes, model="A100") == ("A100", 2)
    with pytest.raises(EvaluatorError, match="no B200: its GPUs are 8 H200, 2 A100"):
        choose(*nodes, model="B200")


def test_fewer_gpus_than_asked_or_none_are_said_with_the_cure() -> None:
    with pytest.raises(EvaluatorError, match=r"16 are asked for, and the Ray cluster has 8 H200 GPUs: lower --gpus"):
        choose(node(8, "H200"), gpus=16)
    with pytest.raises(EvaluatorError, match="the Ray cluster has no GPUs: see `ray status`"):
        choose(node(0))


def opening(monkeypatch: pytest.MonkeyPatch, address: str, error: Exception | None = None) -> str:
    """The message when the pool is entered, with a Ray that fails so."""

    def init(*_: object, **__: object) -> None:
        assert error
        raise error

    if error:
        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, shutdown=lambda: None))
        monkeypatch.setattr(raypool, "_reach", lambda *_: None)
    with pytest.raises(EvaluatorError) as caught, RayPool(TASK.spec, TASK.folder, address=address):
        pass
    return str(caught.value)


def test_what_keeps_the_cluster_from_being_used_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Version mismatch: The cluster was started with:\n    Ray: 2.59.0\n    Python: 3.12.1"
    assert "pip install ray==VERSION" in opening(monkeypatch, "head:6379", RuntimeError(text))
    assert "Ray: 2.59.0" in opening(monkeypatch, "head:6379", RuntimeError(text))
    no_token = RuntimeError("InvalidAuthToken: token is missing")
    assert "put the head's ~/.ray/auth_token here" in opening(monkeypatch, "head:6379", no_token)
    refused = ConnectionError("Failed to connect to Ray cluster")
    assert "and the token the head's" in opening(monkeypatch, "head:6379", refused)
    none = ConnectionError("Could not find any running Ray instance")
    assert "no Ray cluster runs on this machine: `ray start --head`" in opening(monkeypatch, "auto", none)


def test_an_address_that_does_not_answer_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(shutdown=lambda: None))
    assert "no Ray cluster answers at 127.0.0.1:1 (" in opening(monkeypatch, "127.0.0.1:1")
    assert "give HOST:PORT of the head" in opening(monkeypatch, "ray://head:10001")
    assert "no Ray cluster answers at head:abc" in opening(monkeypatch, "head:abc")


def test_without_ray_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'k-search[ray]'" in opening(monkeypatch, "head:6379")


def test_a_task_travels_whole_and_is_mended_where_files_of_it_were_removed(tmp_path: Path) -> None:
    files = packed(TASK.folder)
    assert {"task.toml", "reference.py"} <= set(files)
    assert not [name for name in files if "__pycache__" in name]
    folder = unpacked(files, tmp_path)
    assert packed(folder) == files
    assert load_task(folder).spec.workloads == TASK.spec.workloads
    (folder / "reference.py").unlink()
    assert packed(unpacked(files, tmp_path)) == files
    changed = {**files, "reference.py": b"# another"}
    assert unpacked(changed, tmp_path) != folder, "two tasks never share a folder"
    assert len(list(tmp_path.iterdir())) == 2, "no drafts are left"


def test_a_task_file_that_cannot_be_written_on_a_worker_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (self / "task.toml").unlink() or real(self, to))
    with pytest.raises(EvaluatorError, match=r"task\.toml of the task is missing on \S+, or is not what was sent"):
        unpacked(packed(TASK.folder), tmp_path)


def test_a_device_of_another_model_is_refused() -> None:
    pool = RayPool(TASK.spec, TASK.folder)
    from ksearch.evaluators.local import Measured
    from ksearch.types import Evaluation, Verdict

    done = Evaluation("0" * 64, Verdict.COMPILE_ERROR, "no", "build", device="Xeon")
    assert pool._checked(Measured(done, {})).evaluation == done
    with pytest.raises(EvaluatorError, match="measures on 'EPYC', others of the cluster on 'Xeon'"):
        pool._checked(Measured(replace(done, device="EPYC"), {"host": "two"}))
