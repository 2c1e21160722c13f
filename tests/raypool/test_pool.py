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
from ksearch.evaluators.local import Measured
from ksearch.evaluators.raypool import RayPool
from ksearch.evaluators.raywork import packed, unpacked
from ksearch.protocol import Lost
from ksearch.tasks import load_task
from ksearch.types import Evaluation, Verdict

TASK = load_task("softmax")
DONE = Evaluation("0" * 64, Verdict.COMPILE_ERROR, "no", "build", device="Xeon")
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
    refused = ConnectionError("Failed to connect to Ray cluster: broken pipe")
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


def test_a_place_that_takes_no_task_is_named(tmp_path: Path) -> None:
    files = packed(TASK.folder)
    with pytest.raises(EvaluatorError, match=r"is missing on .* \(No such file or directory\): see that \S+/absent "):
        unpacked(files, tmp_path / "absent")
    unpacked({**files, "reference.py": b""}, tmp_path)
    with pytest.raises(EvaluatorError, match=r"see that \S+ has room and is writable there"):
        unpacked({**files, "reference.py/inside": b"a file in a file"}, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1, "no drafts are left"


def test_why_a_worker_is_lost_is_said_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class RayError(Exception): ...

    class RayTaskError(RayError): ...

    pool = RayPool(TASK.spec, TASK.folder)
    pool._ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError))
    pool._task = SimpleNamespace(remote=lambda *_: None)
    pool._seats.release()

    def lost(error: Exception) -> str:
        monkeypatch.setattr(pool, "_result", lambda _: (_ for _ in ()).throw(error))
        found = pool.evaluate(TASK.spec.baseline).evaluation
        assert isinstance(found, Lost)
        return found.reason

    there = "ray::measure() (pid=7, ip=10.0.0.2)\n  File ..., line 3\nModuleNotFoundError: No module named 'numpy'\n"
    assert lost(RayTaskError(there)).endswith("No module named 'numpy'")
    assert lost(RayError("The node has died\nsee its logs")).endswith("The node has died")


def test_a_machine_that_fails_where_others_have_measured_gives_a_lost_result(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = RayPool(TASK.spec, TASK.folder)
    pool._task = SimpleNamespace(remote=lambda *_: None)
    monkeypatch.setattr(pool, "_ray", SimpleNamespace(exceptions=SimpleNamespace(RayError=ConnectionError)))
    answers: list[object] = ["two: no driver shows a GPU here", Measured(DONE, {}), "two: no driver shows a GPU here"]
    monkeypatch.setattr(pool, "_result", lambda _: answers.pop(0))
    pool._seats.release()
    with pytest.raises(EvaluatorError, match="two: no driver"):
        pool.evaluate(TASK.spec.baseline)
    assert pool.evaluate(TASK.spec.baseline).evaluation == DONE
    assert pool.evaluate(TASK.spec.baseline).evaluation == Lost("two: no driver shows a GPU here")


def test_a_device_of_another_model_is_refused() -> None:
    pool = RayPool(TASK.spec, TASK.folder)
    assert pool._checked(Measured(DONE, {})).evaluation == DONE
    with pytest.raises(EvaluatorError, match="measures on 'EPYC', others of the cluster on 'Xeon'"):
        pool._checked(Measured(replace(DONE, device="EPYC"), {"host": "two"}))
