"""Judging: what is in the buffers after the calls, against what was expected. A part of the oracle."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ksearch.definition import TaskSpec, Tensor, Tolerance
from ksearch.evaluators import wire
from ksearch.evaluators.buffers import Layout
from ksearch.evaluators.compare import Report
from ksearch.evaluators.host import Memory, Set

Array = Any  # of the device: numpy.ndarray or torch.Tensor
EXACT = Tolerance(0.0, 0.0, 0.0)
LATE_WAIT_S = 0.02
PAST = 6


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


class Judge:
    """Looks at the buffers of `groups`; whatever a runner says."""

    spec: TaskSpec
    memory: Memory
    groups: dict[str, Group]

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


def _fault(verdict: str, reason: str) -> wire.Message:
    return {"verdict": verdict, "reason": reason}
