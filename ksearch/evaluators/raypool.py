"""The GPUs of a Ray cluster as one evaluator: each program is measured alone on a GPU that Ray has leased for it.

Code and task travel with the job. A lost node or worker, and a pre-empted one, is a `Lost` result, never a verdict.
"""

from __future__ import annotations

import importlib
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import ksearch
from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators import raywork
from ksearch.evaluators.local import Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.protocol import Lost
from ksearch.types import Program

ADDRESS = "RAY_ADDRESS"
_MODEL = "accelerator_type:"  # how Ray names a node's model of GPU among its resources
_POLL_S, _CONNECT_S, _BARREN_S = 1.0, 5.0, 60.0


class RayPool:
    """Use it as a context manager; `evaluate` is safe from several threads.

    Args:
        address: HOST:PORT of the head; None: RAY_ADDRESS, else the cluster that this machine is part of.
        gpus: how many to use; None: all.
        model: which model of GPU, as Ray names it ("H200"); needed only where the cluster has several.

    Raises:
        EvaluatorError: when entered, if Ray, the cluster or enough GPUs of one model are not there.
    """

    def __init__(
        self, spec: TaskSpec, folder: Path, *, address: str | None = None, gpus: int | None = None,
        model: str | None = None, options: EvaluatorOptions | None = None,
    ) -> None:  # fmt: skip
        self.spec, self.folder, self.options = spec, folder, options or EvaluatorOptions(profile="best")
        self.address = address or os.environ.get(ADDRESS) or "auto"
        self.gpus, self.model = gpus, model
        self.devices = 0
        self._ray: Any = None
        self._task: Any = None
        self._files: Any = None
        self._device = ""
        self._seats = threading.Semaphore(0)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        self._ray = ray = _ray()
        _reach(self.address)
        package = str(Path(ksearch.__file__).parent)
        travels = {"py_modules": [package], "excludes": ["**/__pycache__", "web/static"]}
        try:
            ray.init(self.address, runtime_env=travels, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise EvaluatorError(_explained(self.address, error, reached=":" in self.address)) from error
        try:
            self.model, self.devices = self._choose(ray.nodes())
            self._files = ray.put(raywork.packed(self.folder))
        except BaseException:
            self.close()
            raise
        self._seats = threading.Semaphore(self.devices)
        needs: dict[str, Any] = {"num_gpus": 1, "num_cpus": 0} if self.spec.device == "cuda" else {"num_cpus": 1}
        if self.model:
            needs["accelerator_type"] = self.model
        # A process serves one program only, and Ray repeats nothing by itself: that a program was lost is told.
        self._task = ray.remote(max_calls=1, max_retries=0, **needs)(raywork.measure)

    def close(self) -> None:
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = self._task = self._files = None

    def _choose(self, nodes: Sequence[Mapping[str, Any]]) -> tuple[str | None, int]:
        """Model and number of the devices to use."""
        alive = [n["Resources"] for n in nodes if n["Alive"]]
        if self.spec.device == "cpu":
            return None, _enough(self.gpus, sum(n.get("CPU", 0) >= 1 for n in alive), "nodes with a free CPU")
        by_model: dict[str, int] = {}
        for node in alive:
            if node.get("GPU"):
                name = next((k.removeprefix(_MODEL) for k in node if k.startswith(_MODEL)), "")
                by_model[name] = by_model.get(name, 0) + int(node["GPU"])
        told = ", ".join(f"{count} {name or 'of a model that Ray does not name'}" for name, count in by_model.items())
        if self.model and self.model not in by_model:
            raise EvaluatorError(f"the cluster has no {self.model}: its GPUs are {told or 'none'}. See --gpu-model")
        if not self.model and len(by_model) > 1:
            raise EvaluatorError(
                f"the cluster has several models of GPU ({told}), whose times are never compared: choose one with "
                f"--gpu-model {max(by_model, key=lambda name: by_model[name])}"
            )
        model = self.model or next(iter(by_model), "")
        return model or None, _enough(self.gpus, by_model.get(model, 0), f"{model} GPUs".strip())

    def evaluate(self, program: Program, against: Sequence[Program] = ()) -> Measured:
        """Measure on any device of the pool.

        Raises:
            EvaluatorError: the first machine that tried cannot measure the task, or another model of device has.
        """
        with self._seats:
            given = (self._files, self.spec, self.options, program, list(against))
            reference = self._task.remote(*given)
            try:
                found = self._result(reference)
            except self._ray.exceptions.RayError as error:
                # Of what our own code there raised, the end of the traceback tells; of Ray's own errors, the beginning.
                end = -1 if isinstance(error, self._ray.exceptions.RayTaskError) else 0
                why = f"{type(error).__name__}: {str(error).strip().splitlines()[end].strip()}"
                return Measured(Lost(f"the Ray worker is lost: {why}"), {"lost": why, "program": program.id})
        if isinstance(found, Measured):
            return self._checked(found)
        if isinstance(found, str):
            if not self._device:
                raise EvaluatorError(found)
            found = Lost(found)  # others have measured this task: the fault is that machine's
        return Measured(found, {"lost": found.reason, "program": program.id})

    def _result(self, reference: Any) -> Measured | Lost | str:
        """What the worker says; lost where for a while no device of ours is left that could take it."""
        barren_since: float | None = None
        while not self._ray.wait([reference], timeout=_POLL_S)[0]:
            if self._any_left():
                barren_since = None
                continue
            barren_since = barren_since or time.monotonic()
            if time.monotonic() - barren_since > _BARREN_S:
                self._ray.cancel(reference, force=True)
                return Lost(f"no device of the pool is left in the Ray cluster at {self.address}: see `ray status`")
        found: Measured | str = self._ray.get(reference)
        return found

    def _any_left(self) -> bool:
        """A device of ours on a living node, free or at work."""
        kind = "GPU" if self.spec.device == "cuda" else "CPU"
        alive = (n["Resources"] for n in self._ray.nodes() if n["Alive"])
        return any(n.get(kind, 0) >= 1 and (not self.model or _MODEL + self.model in n) for n in alive)

    def _checked(self, found: Measured) -> Measured:
        if not isinstance(found.evaluation, Lost):
            device = found.evaluation.device
            self._device = self._device or device
            if device != self._device:
                raise EvaluatorError(
                    f"{found.record.get('host')} measures on {device!r}, others of the cluster on {self._device!r}: "
                    "times of different models are never compared. Use nodes of one model only"
                )
        return found


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise EvaluatorError("Ray is not installed: pip install 'k-search[ray]' (here and on every node)") from error


def _reach(address: str, timeout_s: float = _CONNECT_S) -> None:
    """Ray itself tries for minutes, in silence."""
    if "://" in address:
        raise EvaluatorError(
            f"{address}: give HOST:PORT of the head (by default :6379), and run ksearch on a machine of the cluster"
        )
    host, _, port = address.rpartition(":")
    if not host:
        return  # "auto", "local"
    try:
        socket.create_connection((host, int(port)), timeout_s).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EvaluatorError(_explained(address, error)) from error


def _explained(address: str, error: Exception, *, reached: bool = False) -> str:
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        return (
            f"Ray or Python is of another version here than in the cluster: {text[:300]}. Install the cluster's: "
            "pip install ray==VERSION"
        )
    if "token" in text.lower() or "UNAUTHENTICATED" in text:
        return (
            f"the Ray cluster at {address} does not accept our token: set RAY_AUTH_MODE=token, and put the head's "
            "~/.ray/auth_token here"
        )
    if reached:
        return (
            f"something listens at {address}, and no Ray cluster lets us in ({text[:200]}): is it the head's port "
            "(6379), and the token the head's (RAY_AUTH_MODE=token, ~/.ray/auth_token)?"
        )
    if address == "auto":
        return f"no Ray cluster runs on this machine: `ray start --head`, or name one (--ray-address, {ADDRESS})"
    return f"no Ray cluster answers at {address} ({text[:200]}): is its head up (`ray status`), and the port open?"


def _enough(wanted: int | None, here: int, what: str) -> int:
    if here == 0:
        raise EvaluatorError(f"the Ray cluster has no {what}: see `ray status`")
    if wanted is not None and wanted > here:
        raise EvaluatorError(f"{wanted} are asked for, and the Ray cluster has {here} {what}: lower --gpus")
    return wanted or here
