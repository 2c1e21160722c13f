"""The runner of tasks with device "cuda". Python and Triton programs get torch tensors, CUDA C++ gets addresses.

Calls go to the default stream. Timed alone, a call is queued while the gate holds the GPU, so that its time is the
GPU's and not that of launching; work that it leaves running elsewhere when its stream is done is added to it.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from ksearch.evaluators import runner
from ksearch.evaluators.arguments import Answer
from ksearch.evaluators.gpu import profiler
from ksearch.evaluators.gpu.cuda import Cuda, CudaError, CudaMemory, Gate, view
from ksearch.evaluators.runner import Fault

GATE_NS = 10_000_000  # a call that waits for the GPU itself meets a closed gate: it is opened after so long
QUEUE_NS = 2_000_000_000
PATIENCE = 3  # so many calls, and the gate is left open for this program at this size
IDLE_NS = 8_000  # what finding the device idle may take
FLUSH_CACHES = 2  # the flush writes so many times the size of L2

Thunk = Callable[[], object]


class GpuBuffers:
    """The buffer sets of one workload, opened from the oracle's handles."""

    def __init__(self, cuda: Cuda, order: Answer) -> None:
        self.cuda = cuda
        self.inputs, self.outputs, self.axes = order["inputs"], order["outputs"], order["axes"]
        self.addresses: list[int] = []
        self.sets: list[torch.Tensor] = []
        self.add(order)

    def add(self, order: Answer) -> None:
        for handle in order["handles"]:
            self.addresses.append(self.cuda.open(handle))
            self.sets.append(view(self.addresses[-1], order["bytes"]))

    def tensors(self, index: int, layouts: list[Answer]) -> list[torch.Tensor]:
        """New tensor objects over the same memory."""
        found = []
        for layout in layouts:
            dtype = getattr(torch, layout["dtype"])
            raw = self.sets[index][layout["offset"] : layout["offset"] + layout["count"] * dtype.itemsize]
            found.append(raw.view(dtype).view(layout["shape"]))
        return found

    def close(self) -> None:
        self.sets.clear()
        for address in self.addresses:
            self.cuda.shut(address)


class GpuRunner(runner.Runner):
    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, GpuBuffers] = {}
        self.held: list[Any] = []  # arguments of queued calls: alive until the device is idle
        self.misses: dict[str, int] = {}  # by workload; of its first order nothing counts: that compiles and allocates
        self.at = [0]

    def start(self, order: Answer) -> Answer:
        """CUDA, before the program is there: it is not to blame for what fails now."""
        self._checked(self._start)
        return {}

    def _start(self) -> None:
        torch.set_grad_enabled(False)
        own = Path.cwd()
        os.environ["TRITON_HOME"], os.environ["TRITON_CACHE_DIR"] = str(own), str(own / ".triton" / "cache")
        os.environ["CUDA_CACHE_PATH"] = str(own / ".cuda")
        # torch.compile and torch's profiler ask for the user's name, and this process's user has none.
        os.environ["LOGNAME"], os.environ["TORCHINDUCTOR_CACHE_DIR"] = "runner", str(own / ".inductor")
        self.cuda = Cuda()
        self.gate = Gate(self.cuda)
        about = torch.cuda.get_device_properties(0)
        self.scratch_bytes = FLUSH_CACHES * about.L2_cache_size
        self.scratch_address = self.cuda.allocate(self.scratch_bytes)
        self.events = [(self.cuda.event(), self.cuda.event()) for _ in range(64)]
        self.cuda.synchronize()

    def load(self, order: Answer, fds: list[int]) -> Answer:
        answer: Answer = self._checked(lambda: super(GpuRunner, self).load(order, fds))
        return answer

    def filename(self, folder: Path, file: str) -> str:
        return str(folder / file)  # Triton reads a kernel's source from its file

    def map(self, order: Answer, fds: list[int]) -> Answer:
        if order["key"] in self.groups:
            self.groups[order["key"]].add(order)
        else:
            self.groups[order["key"]] = GpuBuffers(self.cuda, order)
        return {}

    def drop(self, order: Answer) -> Answer:
        self.results.clear()
        self.held.clear()
        if (buffers := self.groups.pop(order["key"], None)) is not None:
            buffers.close()
            torch.cuda.empty_cache()
        return {}

    def run(self, order: Answer) -> Answer:
        """Call once per set named; the answer holds nanoseconds per call, as the GPU's clock has them."""
        self.key = order["key"]
        calls = self._calls(order)
        return {"ns": self._checked(lambda: self._alone(calls) if order["flush"] else self._together(calls))}

    def queue(self, order: Answer) -> Answer:
        """Queue a call per set named behind the closed gate, and answer at once."""
        calls = list(self._calls(order))

        def step() -> None:
            self.cuda.synchronize()
            self.gate.close(QUEUE_NS)
            for index, call in calls:
                self.at[0] = index
                self._take(index, call())

        self._checked(step)
        return {}

    def profile(self, order: Answer) -> Answer:
        """The last of these calls under torch's profiler: advice, no evidence."""
        calls = self._calls(order)
        seen: Answer = self._checked(lambda: profiler.seen(calls, self.cuda.synchronize, self._flush))
        return seen

    def release(self, order: Answer) -> Answer:
        """Open the gate and wait until everything that was queued is done."""
        self.gate.open()
        self._checked(self.cuda.synchronize)
        return {}

    def _calls(self, order: Answer) -> Iterator[tuple[int, Thunk]]:
        """One after the other: while the GPU works on a call, the next one's arguments are made."""
        self.results.clear()
        self.held.clear()
        buffers = self.groups[order["key"]]
        for index in order["sets"]:
            yield index, self._thunk(buffers, index)

    def _thunk(self, buffers: GpuBuffers, index: int) -> Thunk:
        inputs, outputs = buffers.tensors(index, buffers.inputs), buffers.tensors(index, buffers.outputs)
        entry = self.entry
        if self.language == "cuda":
            pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*inputs, *outputs)]
            numbers = [ctypes.c_int64(a) for a in buffers.axes]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            return lambda: entry(*pointers, *numbers, stream)
        passing = runner.parameters(entry) == len(inputs) + len(outputs)
        given = inputs + outputs if passing else inputs
        self.held.append(given)
        return lambda: entry(*given)

    def _take(self, index: int, result: Any) -> None:
        if result is not None:
            self.results.append((index, result))

    def _alone(self, calls: Iterable[tuple[int, Thunk]]) -> list[int]:
        cuda, (start, end), clock = self.cuda, self.events[0], time.perf_counter_ns
        runtime, taken = cuda.runtime, []
        missed = self.misses.get(self.key, 0)
        gated = missed < PATIENCE
        for index, call in calls:
            self.at[0] = index
            cuda.synchronize()
            self._flush()
            if gated:
                self.gate.close(GATE_NS)
            cuda.call("cudaEventRecord", start, None)
            result = call()
            cuda.call("cudaEventRecord", end, None)
            early = gated and runtime.cudaEventQuery(start) == 0
            self.gate.open()
            cuda.call("cudaEventSynchronize", end)
            done = clock()
            cuda.synchronize()
            left = max(0, clock() - done - IDLE_NS)
            missed += early
            taken.append(cuda.elapsed_ns(start, end) + left)
            self._take(index, result)
        self.misses[self.key] = missed if self.key in self.misses else 0
        return taken

    def _together(self, calls: Iterable[tuple[int, Thunk]]) -> list[int]:
        cuda, count = self.cuda, 0
        cuda.synchronize()
        for count, (index, call) in enumerate(calls, 1):
            start, end = self.events[count - 1]
            self.at[0] = index
            cuda.call("cudaEventRecord", start, None)
            result = call()
            cuda.call("cudaEventRecord", end, None)
            self._take(index, result)
        cuda.synchronize()
        return [cuda.elapsed_ns(start, end) for start, end in self.events[:count]]

    def _flush(self) -> None:
        """Nothing of the buffers, and nothing that was asked to stay, is left in L2."""
        self.cuda.runtime.cudaCtxResetPersistingL2Cache()
        size = ctypes.c_size_t(self.scratch_bytes)
        self.cuda.call("cudaMemsetAsync", ctypes.c_void_p(self.scratch_address), 1, size, None)

    def flush(self, order: Answer) -> Answer:
        self._checked(self._flush)
        self._checked(self.cuda.synchronize)
        return {}

    def _checked(self, step: Callable[[], Any]) -> Any:
        """Whatever goes wrong is the program's fault: nothing else of this process has ever failed before it."""
        try:
            return runner.guarded(step, self.at)
        except Fault as fault:
            last = str(fault).strip().splitlines()[-1]
            if any(word in last for word in ("OutOfMemoryError", "CudaMemory", "CUDA out of memory")):
                raise Fault("memory", last, self.at[0]) from fault
            raise

    def collect(self, order: Answer) -> Answer:
        """Copy what a program returned into the output buffers, after all calls of the order."""
        buffers = self.groups.get(self.key)
        if buffers is not None and self.results:
            self._checked(lambda: self._copy_all(buffers, bool(order["exact"])))
        self.results.clear()
        self.held.clear()
        return {}

    def _copy_all(self, buffers: GpuBuffers, exact: bool) -> None:
        seen: dict[int, tuple[int, str]] = {}
        for index, result in self.results:
            returned = result if isinstance(result, (tuple, list)) else (result,)
            if len(returned) != len(buffers.outputs):
                text = f"returned {len(returned)} values, wanted {len(buffers.outputs)}"
                raise Fault("shape", text, index)
            targets = buffers.tensors(index, buffers.outputs)
            for target, layout, value in zip(targets, buffers.outputs, returned, strict=True):
                _fits(target, layout["name"], value, exact, index)
                if value.numel() and value.data_ptr() in seen:
                    other, name = seen[value.data_ptr()]
                    text = (
                        f"{layout['name']} of call {index} lies where {name} of call {other} does: results are reused"
                    )
                    raise Fault("alias", text, index)
                seen[value.data_ptr()] = (index, layout["name"])
                if value.data_ptr() != target.data_ptr():
                    target.copy_(value)
        self.cuda.synchronize()


def _fits(target: torch.Tensor, name: str, value: Any, exact: bool, index: int) -> None:
    if exact and type(value) is not torch.Tensor:
        raise Fault("dtype", f"{name}: returned a {type(value).__name__}, wanted a plain torch.Tensor", index)
    if value.device != target.device:
        raise Fault("dtype", f"{name}: on device {value.device}, wanted {target.device}", index)
    if value.dtype != target.dtype and exact:
        raise Fault("dtype", f"{name}: dtype {value.dtype}, wanted {target.dtype}", index)
    if value.shape != target.shape:
        raise Fault("shape", f"{name}: shape {list(value.shape)}, wanted {list(target.shape)}", index)
    if exact and not value.is_contiguous():
        text = f"{name}: strides {list(value.stride())}, wanted {list(target.stride())} (contiguous)"
        raise Fault("shape", text, index)


def serve(fd: int) -> None:
    runner.serve(fd, GpuRunner)


__all__ = ["CudaError", "CudaMemory", "GpuRunner", "serve"]
