"""Runs in a process of its own, `python -m ksearch.tasks.foreign.probe FD`: what only running the code can tell.

The order comes on stdin as JSON, the answer goes to descriptor FD as JSON. The code that is looked at may print.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from ksearch.errors import TaskError

LIMIT_S = 300
TEMPLATES = Path(__file__).parents[1] / "template_files"
Found = dict[str, Any]


def ask(order: Found, source: Path) -> Found:
    """The answer of a child process to `order`.

    Raises:
        TaskError: torch is not installed here, or the code raises; with the line it raised at.
    """
    read, write = os.pipe()
    command = [sys.executable, "-m", "ksearch.tasks.foreign.probe", str(write)]
    with os.fdopen(read, "rb") as pipe:
        try:
            done = subprocess.run(
                command, input=json.dumps(order).encode(), pass_fds=(write,), timeout=LIMIT_S,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TaskError(
                f"{source}: its inputs and outputs were not known after {LIMIT_S} s of running it"
            ) from None
        finally:
            os.close(write)
        text = pipe.read()
    if not text:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise TaskError(f"{source}: running it to find its shapes failed: {last[0]}")
    answer: Found = json.loads(text)
    if "error" in answer:
        raise TaskError(f"{answer.get('where') or source}: {answer['error']}")
    return answer


def _scope(path: str) -> Found:
    sys.path.insert(0, str(Path(path).parent))
    scope: Found = {"__name__": "original", "__file__": path}
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), scope)  # noqa: S102
    return scope


def _about(tensor: Any) -> Found:
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def kernelbench(order: Found, bridge: Any) -> Found:
    """Shapes of a `Model`: without memory on torch's meta device where that works, else for real."""
    import torch

    try:
        with torch.no_grad(), torch.device("meta"):
            return _model(_scope(order["file"]), bridge, torch)
    except Exception:  # noqa: BLE001  # many operations have no meta version: then for real, and its errors count
        with bridge.placed(order["device"]):
            return _model(_scope(order["file"]), bridge, torch)


def _model(scope: Found, bridge: Any, torch: Any) -> Found:
    model, data = scope["Model"](*scope["get_init_inputs"]()), scope["get_inputs"]()
    if not isinstance(data, list | tuple):
        raise TypeError(f"get_inputs() must return a list, got {type(data).__name__}")
    names = [p.name for p in inspect.signature(model.forward).parameters.values()]
    tensors = {n: _about(v) for n, v in zip(names, data, strict=False) if isinstance(v, torch.Tensor)}
    others = {n: repr(v) for n, v in zip(names, data, strict=False) if not isinstance(v, torch.Tensor)}
    state = {k: _about(v) for k, v in model.state_dict().items() if v.is_floating_point()}
    outputs = [_about(v) for _, v in bridge.leaves(model(*data))]
    return {"inputs": tensors, "others": others, "state": state, "outputs": outputs}


def gpu_mode(order: Found, bridge: Any) -> Found:
    """Names, types and shapes of one problem's data, case by case."""
    import torch

    with tempfile.TemporaryDirectory() as beside:  # modules that it imports, which may lie elsewhere
        for name, text in order["extra"].items():
            Path(beside, name).write_text(text, encoding="utf-8")
        sys.path.insert(0, beside)
        scope = _scope(order["file"])
    with bridge.placed(order["device"]):
        drawn = [scope["generate_input"](**case) for case in order["cases"]]
    numbers, cases = _varying([bridge.plain(data) for data in drawn]), []
    for data in drawn:
        before = [t.clone() for _, t in bridge.leaves(data, numbers)]
        with bridge.placed(order["device"]):
            found = bridge.leaves(scope["ref_kernel"](data))
        inputs = [(path, _about(t)) for path, t in bridge.leaves(data, numbers)]
        changed = [not torch.equal(a, t) for a, (_, t) in zip(before, bridge.leaves(data, numbers), strict=True)]
        cases.append({"inputs": inputs, "changed": changed, "outputs": [_about(t) for _, t in found]})
    return {"cases": cases, "numbers": numbers}


def _varying(found: list[Found]) -> list[str]:
    """Places of numbers that differ between cases: a program has to be given them."""
    places = [p for p in found[0] if len({repr(values.get(p)) for values in found}) > 1]
    for place in places:
        if any(isinstance(v.get(place), bool) or not isinstance(v.get(place), int | float) for v in found):
            seen = ", ".join(sorted({repr(v.get(place)) for v in found})[:3])
            raise TypeError(f"generate_input() gives {seen} at place {place}: tensors and numbers may differ by case")
    return places


def main(fd: str) -> None:
    order = json.load(sys.stdin)
    sys.path.insert(0, str(TEMPLATES))
    try:
        bridge = importlib.import_module("ksearch_bridge")
        if order["device"] == "cuda" and not importlib.import_module("torch").cuda.is_available():
            order["device"] = "cpu"  # shapes are the same there
        answer = {"kernelbench": kernelbench, "gpu-mode": gpu_mode}[order["format"]](order, bridge)
    except Exception as error:  # noqa: BLE001  # boundary: the task author's code
        answer = {"error": f"{type(error).__name__}: {error}", "where": _line(error, order["file"])}
    with os.fdopen(int(fd), "w") as out:
        json.dump(answer, out)


def _line(error: BaseException, file: str) -> str:
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{own[-1].lineno}" if own else file


if __name__ == "__main__":
    main(sys.argv[1])
