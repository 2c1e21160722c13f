"""The oracle: makes inputs, computes the reference, judges outputs. No candidate code ever runs here.

It keeps seeds and expected values in its own memory, non-dumpable, and hands out nothing but buffers. Expected
values are computed before the inputs are written to where a runner can see them.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksearch.definition import TaskSpec, Tensor, Tolerance
from ksearch.evaluators import linux, wire
from ksearch.evaluators.buffers import Layout, lay_out
from ksearch.evaluators.compare import Report
from ksearch.evaluators.host import Host, Memory, Set, declared

Array = Any  # of the device: numpy.ndarray or torch.Tensor
EXACT = Tolerance(0.0, 0.0, 0.0)
LATE_WAIT_S = 0.02
PAST = 6
PAST_BYTES = 16 << 20  # larger expected values are not kept to recognise stale outputs


class TaskFault(Exception):
    """The task's own code is at fault: its reference raised, or gave something else than declared."""


@dataclass(slots=True)
class Filled:
    """What the oracle knows of one filled set."""

    seed: str = ""
    inputs: list[Any] = field(default_factory=list)  # what the device keeps of them
    awkward: int | None = None
    expected: dict[str, Array] | None = None
    kept: list[Array] = field(default_factory=list)  # outputs as they were when judged


@dataclass(slots=True)
class Group:
    """The buffer sets of one runner for one workload."""

    axes: dict[str, int]
    layout: Layout
    sets: list[Set]
    filled: list[Filled]
    past: deque[dict[str, Array]] = field(default_factory=lambda: deque(maxlen=PAST))  # expected, of earlier fills


class Oracle:
    def __init__(self, spec: TaskSpec, folder: Path, memory: Memory) -> None:
        self.spec, self.memory = spec, memory
        scope = _load(folder / "reference.py")
        self.make_inputs: Callable[..., dict[str, Array]] = _function(scope, "inputs", folder)
        self.reference: Callable[..., dict[str, Array]] = _function(scope, "reference", folder)
        self.awkward: Callable[..., list[dict[str, Array]]] | None = scope.get("awkward")
        self.groups: dict[str, Group] = {}
        self.reference_s = 0.0

    # --- buffers

    def sets(self, order: wire.Message) -> tuple[wire.Message, list[int]]:
        """Make `count` more buffer sets under `key`; answers with their descriptors and layout."""
        key, axes = order["key"], order["axes"]
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(axes, lay_out(self.spec, axes, self.memory.stagger), [], [])
        made, more, fds = self.memory.make(group.layout, order["count"])
        group.sets += made
        group.filled += [Filled() for _ in made]
        answer = {
            "bytes": group.layout.size_bytes,
            "inputs": [s.layout() for s in group.layout.inputs],
            "outputs": [s.layout() for s in group.layout.outputs],
            "axes": [axes[a] for a in self.spec.axes], **more,
        }  # fmt: skip
        return answer, fds

    def drop(self, order: wire.Message) -> wire.Message:
        for key in [k for k in self.groups if k == order["key"] or k.startswith(order["key"] + "/")]:
            group = self.groups.pop(key)
            group.filled.clear()
            for one in group.sets:
                one.close()
        return {}

    # --- values

    def fill(self, order: wire.Message) -> wire.Message:
        """Fresh values for set number i of every key; the same values for all of them.

        `expect`: for which sets the reference is computed. `source`: draw, or awkward number n.
        """
        groups = [self.groups[k] for k in order["keys"]]
        source = order.get("awkward")
        for index in order["sets"]:
            seed = self.memory.seed()
            inputs = self._draw(groups[0].axes, seed, source)
            expected = self._expect(inputs, groups[0].axes) if index in order["expect"] else None
            for group in groups:
                _remember(group, group.filled[index])
                kept = self.memory.keep(list(inputs.values()))
                group.filled[index] = Filled(f"{seed:032x}", kept, source, expected)
                self._write(group, index, list(inputs.values()), order["poison"])
        return {"reference_s": self.reference_s}

    def again(self, order: wire.Message) -> wire.Message:
        """The values of these sets once more, with outputs poisoned anew; what was judged is kept."""
        group = self.groups[order["key"]]
        for index in order["sets"]:
            self._write(group, index, self._once_more(group, group.filled[index]), order["poison"])
        return {}

    def _once_more(self, group: Group, filled: Filled) -> Sequence[Array]:
        values = self.memory.recall(filled.inputs)
        if values is not None:
            return values
        drawn = list(self._draw(group.axes, int(filled.seed, 16), filled.awkward).values())
        if not all(self.memory.unchanged(v, k) for v, k in zip(drawn, filled.inputs, strict=True)):
            raise TaskFault("inputs() gave other values for the same seed: draw from the given generator only")
        return drawn

    def count_awkward(self, order: wire.Message) -> wire.Message:
        if self.awkward is None:
            return {"count": 0}
        cases = self._call("awkward", self.awkward, order["axes"], self.memory.generator(0))
        if not isinstance(cases, list):
            raise TaskFault(f"awkward() must return a list, got {type(cases).__name__}")
        return {"count": len(cases)}

    def _draw(self, axes: dict[str, int], seed: int, awkward: int | None) -> dict[str, Array]:
        rng = self.memory.generator(seed)
        if awkward is None:
            values = self._call("inputs", self.make_inputs, dict(axes), rng)
        else:
            assert self.awkward is not None
            values = self._call("awkward", self.awkward, dict(axes), rng)[awkward]
        try:
            return declared(self.memory, "inputs", values, self.spec.inputs, self.spec.names(axes))
        except ValueError as error:
            raise TaskFault(str(error)) from error

    def _expect(self, inputs: dict[str, Array], axes: dict[str, int]) -> dict[str, Array]:
        start = time.perf_counter()
        given = {k: self.memory.copy(v) for k, v in inputs.items()}
        found = self._call("reference", self.reference, given, dict(axes))
        self.memory.settle()
        self.reference_s = time.perf_counter() - start
        wanted = [t for t in self.spec.inputs if t.mutable and t.name in found]
        result = {}
        for tensor in (*self.spec.outputs, *wanted):
            if tensor.name not in found:
                raise TaskFault(f"reference() does not return {tensor.name!r}")
            value = self.memory.own(found[tensor.name])
            shape = tensor.dims(self.spec.names(axes))
            if tuple(value.shape) != shape:
                raise TaskFault(f"reference(): {tensor.name} has shape {tuple(value.shape)}, declared {shape}")
            result[tensor.name] = value
        return result

    def _call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # boundary: the task author's code
            if _is_memory(error):
                raise MemoryError(str(error)) from error
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{name}() raised {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            raise TaskFault(text) from error

    def _write(self, group: Group, index: int, inputs: Sequence[Array], poison: str) -> None:
        target = group.sets[index]
        for slot, values in zip(group.layout.inputs, inputs, strict=True):
            target.array(slot)[...] = values
        for slot in group.layout.outputs:
            if poison != "none":
                self.memory.poison(target.array(slot), poison)
        for slot in (*group.layout.inputs, *group.layout.outputs):
            target.mark(slot)

    # --- judging

    def judge(self, order: wire.Message) -> wire.Message:
        """Look at the outputs of these sets. `peer`: key whose outputs stand in where no reference was computed.

        Answers with the first fault, if any, and the largest errors seen.
        """
        group, peer = self.groups[order["key"]], self.groups.get(order.get("peer", ""))
        off, worst = set(order.get("off", ())), {"max_abs": 0.0, "max_rel": 0.0, "norm": 0.0, "exact": 0}
        for index in order["sets"]:
            fault = self._intact(group, index, off) or self._right(group, index, peer, off, worst)
            if fault:
                return {"fault": {**fault, "set": index, "seed": group.filled[index].seed}, **worst}
            if order.get("keep"):
                filled = group.filled[index]
                filled.kept = [self.memory.copy(group.sets[index].array(s)) for s in group.layout.outputs]
        return {"fault": None, **worst}

    def _intact(self, group: Group, index: int, off: set[str]) -> wire.Message | None:
        one, filled = group.sets[index], group.filled[index]
        for slot, values in zip(group.layout.inputs, filled.inputs, strict=True):
            if "input_hash" in off or slot.tensor.mutable:
                continue
            if not self.memory.unchanged(one.array(slot), values):
                return _fault("input_changed", f"input {slot.tensor.name} was changed; write to outputs only")
        for slot in (*group.layout.inputs, *group.layout.outputs):
            if "canary" not in off and not one.marked(slot):
                return _fault("runtime_error", f"wrote past the end of {slot.tensor.name}")
        return None

    def _right(
        self, group: Group, index: int, peer: Group | None, off: set[str], worst: dict[str, float]
    ) -> wire.Message | None:
        expected, slack = group.filled[index].expected, 1.0
        slots = {s.tensor.name: s for s in group.layout.outputs}
        slots |= {s.tensor.name: s for s in group.layout.inputs if expected and s.tensor.name in expected}
        for name, slot in slots.items():
            got = group.sets[index].array(slot)
            if expected is not None:
                wanted = expected[name]
                worst["exact"] += 1
            elif peer is not None:
                wanted, slack = peer.sets[index].array(slot), 2.0  # both may be off by the tolerance
            else:
                continue
            if expected is None and self.memory.clearly_equal(got, wanted, self._tolerance(slot.tensor, slack)):
                continue
            report = self._compare(slot.tensor, got, wanted, slack, off)
            worst["max_abs"] = max(worst["max_abs"], report.max_abs)
            worst["max_rel"] = max(worst["max_rel"], report.max_rel)
            if expected is not None:
                worst["norm"] = max(worst["norm"], report.norm)
            if report.verdict != "passed":
                return self._explain(group, index, name, report, off)
        return None

    def _compare(self, tensor: Tensor, got: Array, wanted: Array, slack: float, off: set[str]) -> Report:
        return self.memory.compare(
            got, wanted, self._tolerance(tensor, slack),
            elementwise="elementwise" not in off, norm="norm" not in off, non_finite="non_finite" not in off,
        )  # fmt: skip

    def _tolerance(self, tensor: Tensor, slack: float) -> Tolerance:
        given = self.spec.tolerance.get(tensor.dtype, EXACT)
        return Tolerance(given.rtol * slack, given.atol * slack, given.norm * slack)

    def _explain(self, group: Group, index: int, name: str, report: Report, off: set[str]) -> wire.Message:
        """A wrong output may have a better name: another call's result, or one that was still being written."""
        slot = next(s for s in (*group.layout.outputs, *group.layout.inputs) if s.tensor.name == name)
        got = group.sets[index].array(slot)
        if "late_write" not in off:
            before = self.memory.copy(got)
            time.sleep(LATE_WAIT_S)
            if not self.memory.same(before, got):
                return _fault("late_write", f"{name} was still being written after the call had returned")
        others = [f.expected for n, f in enumerate(group.filled) if n != index and f.expected is not None]
        for wanted in [] if "stale_output" in off else [*others, *group.past]:
            if self._compare(slot.tensor, got, wanted[name], 1.0, off).verdict == "passed":
                text = f"{name} holds the result of another call: an output was cached or its buffer reused"
                return _fault("stale_output", text)
        return _fault(report.verdict, report.reason(name))

    def repeat(self, order: wire.Message) -> wire.Message:
        """Outputs of these sets now, against what was kept of the first time with the same inputs."""
        group, off = self.groups[order["key"]], set(order.get("off", ()))
        for index in order["sets"]:
            for slot, kept in zip(group.layout.outputs, group.filled[index].kept, strict=True):
                report = self._compare(slot.tensor, group.sets[index].array(slot), kept, 2.0, off)
                if report.verdict != "passed":
                    text = f"two runs on the same inputs differ: {report.reason(slot.tensor.name)}"
                    return {"fault": {**_fault(report.verdict, text), "set": index}}
        return {"fault": None}

    def late(self, order: wire.Message) -> wire.Message:
        """Have outputs changed since they were judged and kept?"""
        group = self.groups[order["key"]]
        for index in order["sets"]:
            for slot, kept in zip(group.layout.outputs, group.filled[index].kept, strict=False):
                if not self.memory.same(group.sets[index].array(slot), kept):
                    text = f"{slot.tensor.name} changed after it had been judged: something still writes to it"
                    return {"fault": {**_fault("late_write", text), "set": index}}
        return {"fault": None}

    def ceilings(self, _: wire.Message) -> wire.Message:
        return self.memory.ceilings()

    def about(self, _: wire.Message) -> wire.Message:
        """What the device is and how it is; on a GPU also a proof that it still computes."""
        return self.memory.about()

    def seeds(self, order: wire.Message) -> wire.Message:
        """Only asked for when the runner is dead."""
        return {"seeds": [f.seed for f in self.groups[order["key"]].filled if f.seed]}


def _remember(group: Group, filled: Filled) -> None:
    if filled.expected is not None and sum(a.nbytes for a in filled.expected.values()) <= PAST_BYTES:
        group.past.append(filled.expected)


def _is_memory(error: BaseException) -> bool:
    """torch has a class of its own, which is no MemoryError."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _fault(verdict: str, reason: str) -> wire.Message:
    return {"verdict": verdict, "reason": reason}


def _load(path: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "reference", "__file__": str(path)}
    sys.path.insert(0, str(path.parent))
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), scope)  # noqa: S102
    except Exception as error:  # boundary: the task author's code
        raise TaskFault(f"{path}: {type(error).__name__}: {error}") from error
    return scope


def _function(scope: dict[str, Any], name: str, folder: Path) -> Callable[..., Any]:
    found = scope.get(name)
    if not callable(found):
        raise TaskFault(f"{folder / 'reference.py'}: no function {name!r}")
    return found  # type: ignore[no-any-return]


def serve(fd: int, make: Callable[[], Memory] = Host, kind: type[Oracle] = Oracle) -> None:
    """Answer the coordinator until it goes away. `make` gives the device, `kind` the oracle on it."""
    linux.hide()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # one for every buffer set that is mapped
    sock = socket.socket(fileno=fd)
    oracles: list[Oracle] = []
    while True:
        try:
            order, fds = wire.recv(sock)
        except wire.Closed:
            return
        answer, send = _answer(oracles, order, fds, lambda spec, folder: kind(spec, folder, make()))
        wire.send(sock, answer, send)
        for one in send:
            os.close(one)


def _answer(
    oracles: list[Oracle], order: wire.Message, fds: list[int], make: Callable[[TaskSpec, Path], Oracle]
) -> tuple[wire.Message, list[int]]:
    try:
        if order["do"] == "open":
            with os.fdopen(fds[0], "rb") as file:
                spec = TaskSpec.from_dict(json.load(file))
            oracles.append(make(spec, Path(order["folder"])))
            return {}, []
        if order["do"] == "sets":
            return oracles[0].sets(order)
        answer: wire.Message = getattr(oracles[0], order["do"])(order)
        oracles[0].memory.settle()
    except TaskFault as error:
        return {"task_fault": str(error)}, []
    except MemoryError as error:
        return {"no_memory": str(error)[:500]}, []
    except Exception as error:  # noqa: BLE001  # boundary: told to the coordinator, which reports it lost
        if _is_memory(error):
            return {"no_memory": str(error)[:500]}, []
        return {"broken": "".join(traceback.format_exception(error)[-3:])}, []
    return answer, []


def main() -> None:
    serve(int(sys.argv[1]))
