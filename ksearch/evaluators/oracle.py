"""The oracle: makes inputs, computes the reference, judges outputs. No candidate code ever runs here.

It keeps seeds and expected values in its own memory, non-dumpable, and hands out nothing but buffers. Expected
values are computed before the inputs are written to where a runner can see them.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ksearch.definition import TaskSpec
from ksearch.evaluators import ceilings, linux, wire
from ksearch.evaluators.buffers import lay_out
from ksearch.evaluators.host import Host, Memory, declared
from ksearch.evaluators.judge import Filled, Group, Judge
from ksearch.evaluators.taskcode import TaskFault, call, function, is_memory, load

Array = Any  # of the device: numpy.ndarray or torch.Tensor
LARGE_BYTES, MOST_THREADS = 256 << 10, 8  # smaller inputs are drawn faster by one thread
CASES_BYTES = 256 << 20  # larger sets of awkward cases are drawn again for each of them
PAST_BYTES = 2 << 20  # larger expected values are not kept to recognise stale outputs


class Oracle(Judge):
    def __init__(self, spec: TaskSpec, folder: Path, memory: Memory) -> None:
        self.spec, self.memory = spec, memory
        scope = load(folder / "reference.py")
        self.make_inputs: Callable[..., dict[str, Array]] = function(scope, "inputs", folder)
        self.reference: Callable[..., dict[str, Array]] = function(scope, "reference", folder)
        self.awkward: Callable[..., list[dict[str, Array]]] | None = scope.get("awkward")
        self.groups: dict[str, Group] = {}
        self.reference_s = 0.0
        self.native: ctypes.CDLL | None = None  # the harness: our own code, compiled
        self.pool: ThreadPoolExecutor | None = None
        self._counts: dict[tuple[Any, ...], int] = {}
        self._cases: tuple[int, dict[str, int], list[dict[str, Array]]] = (0, {}, [])

    def help(self, cores: Sequence[int]) -> None:
        """Fill large sets in threads on these cores, which nobody else needs meanwhile: runners are stopped."""
        if len(cores) > 1:
            self.pool = ThreadPoolExecutor(min(len(cores), MOST_THREADS), initializer=lambda: _settle(cores))

    def harness(self, order: wire.Message, fds: list[int]) -> wire.Message:
        """Take our own compiled code: flushing caches, and measuring ceilings."""
        self.native = ctypes.CDLL(f"/proc/self/fd/{fds[0]}")
        os.close(fds[0])
        return {}

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

        `expect`: for which sets the reference is computed. `awkward`: number of the case, instead of drawn values.
        `flush`: put everything out of all caches afterwards.
        """
        groups, indices = [self.groups[k] for k in order["keys"]], order["sets"]
        large = sum(s.nbytes for s in groups[0].layout.inputs) >= LARGE_BYTES
        if self.pool is not None and large and len(indices) > 1 and order.get("awkward") is None:
            list(self.pool.map(lambda index: self._fill(groups, index, order), indices))
        else:
            for index in indices:
                self._fill(groups, index, order)
        return {"reference_s": self.reference_s}

    def _fill(self, groups: list[Group], index: int, order: wire.Message) -> None:
        axes, case = groups[0].axes, order.get("awkward")
        seed, inputs = self._fresh(axes) if case is None else self._case(axes, case)
        expected = self._expect(inputs, axes) if index in order["expect"] else None
        for group in groups:
            _remember(group, group.filled[index])
            kept = self.memory.keep(list(inputs.values()))
            group.filled[index] = Filled(f"{seed:032x}", kept, case, expected)
            self._write(group, index, list(inputs.values()), order["poison"])
            self._flush(group, index, order)

    def again(self, order: wire.Message) -> wire.Message:
        """The values of these sets once more, with outputs poisoned anew; what was judged is kept."""
        group = self.groups[order["key"]]
        for index in order["sets"]:
            self._write(group, index, self._once_more(group, group.filled[index]), order["poison"])
            self._flush(group, index, order)
        return {}

    def _once_more(self, group: Group, filled: Filled) -> Sequence[Array]:
        values = self.memory.recall(filled.inputs)
        if values is not None:
            return values
        drawn = list(self._draw(group.axes, int(filled.seed, 16), filled.awkward).values())
        if not all(self.memory.unchanged(v, k) for v, k in zip(drawn, filled.inputs, strict=True)):
            raise TaskFault("inputs() gave other values for the same seed: draw from the given generator only")
        return drawn

    def _flush(self, group: Group, index: int, order: wire.Message) -> None:
        if order.get("flush") and self.native is not None:
            ranges = group.sets[index].ranges()  # type: ignore[attr-defined]  # only asked for on CPUs
            self.native.ksearch_flush(ctypes.c_void_p(ranges.ctypes.data), len(ranges))

    def count_awkward(self, order: wire.Message) -> wire.Message:
        if self.awkward is None:
            return {"count": 0}
        key = tuple(order["axes"].items())
        if key not in self._counts:
            self._counts[key] = len(self._draw_cases(dict(order["axes"]), 0))
        return {"count": self._counts[key]}

    def _draw_cases(self, axes: dict[str, int], seed: int) -> list[dict[str, Array]]:
        assert self.awkward is not None
        cases = call("awkward", self.awkward, dict(axes), self.memory.generator(seed))
        if not isinstance(cases, list):
            raise TaskFault(f"awkward() must return a list, got {type(cases).__name__}")
        return cases

    def _case(self, axes: dict[str, int], number: int) -> tuple[int, dict[str, Array]]:
        """(seed, awkward case `number`). All cases are drawn at once: kept from the first to the last of them."""
        seed, key, cases = self._cases
        if number == 0 or key != axes or number >= len(cases):
            seed = self.memory.seed()
            cases = self._draw_cases(axes, seed)
        found = self._declared(cases[number], axes)
        small = sum(a.nbytes for case in cases for a in case.values()) <= CASES_BYTES
        self._cases = (seed, dict(axes), cases) if small and number + 1 < len(cases) else (0, {}, [])
        return seed, found

    def _fresh(self, axes: dict[str, int]) -> tuple[int, dict[str, Array]]:
        seed = self.memory.seed()
        return seed, self._draw(axes, seed, None)

    def _draw(self, axes: dict[str, int], seed: int, awkward: int | None) -> dict[str, Array]:
        if awkward is not None:
            return self._declared(self._draw_cases(axes, seed)[awkward], axes)
        values = call("inputs", self.make_inputs, dict(axes), self.memory.generator(seed))
        return self._declared(values, axes)

    def _declared(self, values: Any, axes: dict[str, int]) -> dict[str, Array]:
        try:
            return declared(self.memory, "inputs", values, self.spec.inputs, self.spec.names(axes))
        except ValueError as error:
            raise TaskFault(str(error)) from error

    def _expect(self, inputs: dict[str, Array], axes: dict[str, int]) -> dict[str, Array]:
        start = time.perf_counter()
        given = {k: self.memory.copy(v) for k, v in inputs.items()}
        found = call("reference", self.reference, given, dict(axes))
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

    def _write(self, group: Group, index: int, inputs: Sequence[Array], poison: str) -> None:
        target = group.sets[index]
        for slot, values in zip(group.layout.inputs, inputs, strict=True):
            target.array(slot)[...] = values
        for slot in group.layout.outputs:
            if poison != "none":
                self.memory.poison(target.array(slot), poison)
        for slot in (*group.layout.inputs, *group.layout.outputs):
            target.mark(slot)

    def ceilings(self, _: wire.Message) -> wire.Message:
        return self.memory.ceilings() if self.native is None else ceilings.measure(self.native)

    def about(self, _: wire.Message) -> wire.Message:
        """What the device is and how it is; on a GPU also a proof that it still computes."""
        return self.memory.about()

    def seeds(self, order: wire.Message) -> wire.Message:
        """Only asked for when the runner is dead."""
        return {"seeds": [f.seed for f in self.groups[order["key"]].filled if f.seed]}


def _remember(group: Group, filled: Filled) -> None:
    if filled.expected is not None and sum(a.nbytes for a in filled.expected.values()) <= PAST_BYTES:
        group.past.append(filled.expected)


def _settle(cores: Sequence[int]) -> None:
    with suppress(OSError):
        os.sched_setaffinity(0, cores)  # of the calling thread alone


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
            oracles[0].help(order.get("cores", ()))
            return {}, []
        if order["do"] == "harness":
            return oracles[0].harness(order, fds), []
        if order["do"] == "sets":
            return oracles[0].sets(order)
        answer: wire.Message = getattr(oracles[0], order["do"])(order)
        oracles[0].memory.settle()
    except TaskFault as error:
        return {"task_fault": str(error)}, []
    except MemoryError as error:
        return {"no_memory": str(error)[:500]}, []
    except Exception as error:  # noqa: BLE001  # boundary: told to the coordinator, which reports it lost
        if is_memory(error):
            return {"no_memory": str(error)[:500]}, []
        return {"broken": "".join(traceback.format_exception(error)[-3:])}, []
    return answer, []


def main() -> None:
    serve(int(sys.argv[1]))
