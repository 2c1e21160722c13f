"""The runner: loads one program, maps buffers, makes calls. Whatever it says is doubted by the coordinator.

It gets the program, buffers by descriptor and axes; never a seed, an expected value or a result object. Its
answers are JSON on its own descriptor, each with the token of the order that it answers.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ksearch.evaluators import wire
from ksearch.evaluators.arguments import STRIDE, Answer, Buffers, Call, Prepared, address, ranges_of


class Fault(Exception):
    """What the program did wrong, as far as the runner can tell."""

    def __init__(self, kind: str, text: str, index: int = 0) -> None:
        super().__init__(text)
        self.answer: Answer = {"fault": kind, "text": text[:3000], "set": index}


class Runner:
    def __init__(self) -> None:
        self.buffers: dict[str, Buffers] = {}
        self.results: list[tuple[int, Any]] = []
        self.key = ""
        self.harness: ctypes.CDLL | None = None
        self.entry: Any = None
        self.language = ""
        self.scratch: np.ndarray[Any, Any] | None = None

    def load(self, order: Answer, fds: list[int]) -> Answer:
        """`fds`: program (shared object, or JSON of the sources), then the harness, if there is one."""
        self.language = order["language"]
        if order["harness"]:
            self.harness = ctypes.CDLL(f"/proc/self/fd/{fds[1]}")
        if self.language not in ("python", "triton"):
            try:
                library = ctypes.CDLL(f"/proc/self/fd/{fds[0]}")
                self.entry = getattr(library, order["name"])
            except OSError as error:
                raise Fault("load", str(error).replace(f"/proc/self/fd/{fds[0]}", "the program")) from error
            except AttributeError as error:
                raise Fault("entry", f"no symbol {order['name']!r}") from error
            self.entry.restype = None
        else:
            self.entry = self._import(order, fds[0])
        for fd in fds:
            os.close(fd)
        return {}

    def _import(self, order: Answer, fd: int) -> Any:
        with os.fdopen(os.dup(fd), "rb") as file:
            sources = json.loads(file.read())
        folder = Path.cwd() / "program"
        for path, text in sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8", "surrogatepass")
        sys.path.insert(0, str(folder))
        scope: dict[str, Any] = {"__name__": "program", "__file__": str(folder / order["file"])}
        try:
            code = compile(sources[order["file"]], self.filename(folder, order["file"]), "exec")
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Fault("syntax", "".join(traceback.format_exception_only(error)).strip()) from error
        guarded(lambda: exec(code, scope))  # noqa: S102
        entry = scope.get(order["name"])
        if not callable(entry):
            found = ", ".join(sorted(k for k, v in scope.items() if callable(v) and not k.startswith("_")))
            raise Fault("entry", f"no function {order['name']!r}; functions here: {found or 'none'}")
        return entry

    def filename(self, folder: Path, file: str) -> str:
        """What tracebacks call the program's file."""
        return file

    def map(self, order: Answer, fds: list[int]) -> Answer:
        if order["key"] in self.buffers:
            self.buffers[order["key"]].add(order, fds)
        else:
            self.buffers[order["key"]] = Buffers(order, fds)
        return {}

    def drop(self, order: Answer) -> Answer:
        self.results.clear()
        self.buffers.pop(order["key"], None)
        return {}

    def run(self, order: Answer) -> Answer:
        """Call once per set named; the answer holds nanoseconds per call."""
        buffers = self.buffers[order["key"]]
        flush = bool(order["flush"])
        if self.language == "python":
            return self._run_python(buffers, order, flush)
        if self.harness is None:
            sets = [buffers.arrays(i, buffers.inputs + buffers.outputs) for i in order["sets"]]
            return {"ns": [self._call_plain(arrays, buffers.axes, flush) for arrays in sets]}
        return {"ns": self._call_harness(buffers.prepared(order["sets"]), flush)}

    def _call_plain(self, arrays: list[np.ndarray[Any, Any]], axes: list[int], flush: bool) -> int:
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        numbers = [ctypes.c_int64(a) for a in axes]
        if flush:
            self._stream()
        start = time.perf_counter_ns()
        self.entry(*pointers, *numbers)
        return time.perf_counter_ns() - start

    def _call_harness(self, prepared: Prepared, flush: bool) -> list[int]:
        assert self.harness is not None
        calls = len(prepared.words)
        ns, at, what = np.zeros(calls, np.uint64), ctypes.c_int(), ctypes.create_string_buffer(512)
        code = self.harness.ksearch_run(
            self.entry, address(prepared.words), STRIDE, prepared.given, address(prepared.ranges),
            prepared.ranges.shape[1] if flush else 0, calls, address(ns), ctypes.byref(at), what, 512,
        )  # fmt: skip
        if code == 2:
            raise Fault("memory", "std::bad_alloc", at.value)
        if code:
            raise Fault("exception", what.value.decode("utf-8", "replace"), at.value)
        result: list[int] = ns.tolist()
        return result

    def _flusher(self, arrays: list[np.ndarray[Any, Any]]) -> Callable[[], object]:
        if self.harness is None:
            return self._stream
        flush, ranges = self.harness.ksearch_flush, ranges_of([arrays])
        return lambda: flush(address(ranges), ranges.shape[1])

    def _stream(self) -> None:
        """Without a harness: push everything else out by walking through more memory than any cache holds."""
        if self.scratch is None:
            self.scratch = np.ones(_cache_bytes() // 4, np.float64)  # twice the cache
        self.scratch += 1

    def _run_python(self, buffers: Buffers, order: Answer, flush: bool) -> Answer:
        self.results.clear()
        self.key = order["key"]
        passing = parameters(self.entry) == len(buffers.inputs) + len(buffers.outputs)
        clock, entry, taken, at = time.perf_counter_ns, self.entry, [], [0]
        prepared = self._prepare_python(buffers, order["sets"], passing)

        def calls() -> None:
            for index, arguments, flusher in prepared:
                at[0] = index
                if flush:
                    flusher()
                start = clock()
                result = entry(*arguments)
                taken.append(clock() - start)
                if not passing:
                    self.results.append((index, result))

        guarded(calls, at)
        return {"ns": taken}

    def _prepare_python(self, buffers: Buffers, sets: list[int], passing: bool) -> list[Call]:
        for index in sets:
            if index not in buffers.calls:
                inputs, outputs = buffers.arrays(index, buffers.inputs), buffers.arrays(index, buffers.outputs)
                given = inputs + outputs if passing else inputs
                buffers.calls[index] = (index, given, self._flusher(inputs + outputs))
        return [buffers.calls[index] for index in sets]

    def flush(self, order: Answer) -> Answer:
        """Put these sets out of all caches, so that queued calls meet them as calls timed alone do."""
        buffers = self.buffers[order["key"]]
        if self.harness is None:
            self._stream()
        else:
            for ranges in buffers.prepared(order["sets"]).ranges:
                self.harness.ksearch_flush(address(ranges), len(ranges))
        return {}

    def collect(self, order: Answer) -> Answer:
        """Copy what a Python program returned into the output buffers, after all calls of the order."""
        buffers = self.buffers.get(self.key)
        for index, result in self.results if buffers else ():
            assert buffers is not None
            returned = result if isinstance(result, tuple) else (result,)
            if len(returned) != len(buffers.outputs):
                text = f"returned {len(returned)} values, wanted {len(buffers.outputs)}"
                raise Fault("shape", text, index)
            for target, layout, value in zip(
                buffers.arrays(index, buffers.outputs), buffers.outputs, returned, strict=True
            ):
                _copy(target, layout, value, bool(order["exact"]), index)
        self.results.clear()
        return {}


def _copy(target: np.ndarray[Any, Any], layout: Answer, value: Any, exact: bool, index: int) -> None:
    name = layout["name"]
    if exact and type(value) is not np.ndarray:
        raise Fault("dtype", f"{name}: returned a {type(value).__name__}, wanted a plain numpy.ndarray", index)
    array = np.asarray(value)
    if array.shape != target.shape:
        raise Fault("shape", f"{name}: shape {list(array.shape)}, wanted {layout['shape']}", index)
    if exact and array.dtype != target.dtype:
        raise Fault("dtype", f"{name}: dtype {array.dtype}, wanted {target.dtype}", index)
    target[...] = array


def parameters(entry: Any) -> int:
    code = getattr(entry, "__code__", None)
    return int(code.co_argcount) if code is not None else -1


def guarded(step: Callable[[], Any], at: Sequence[int] = (0,)) -> Any:
    """Run a Python program's code: whatever it raises is a fault of the program, in the call `at[0]`."""
    try:
        return step()
    except Fault:
        raise
    except MemoryError as error:
        raise Fault("memory", f"MemoryError: {error}", at[0]) from error
    except SystemExit as error:
        raise Fault("exit", f"SystemExit({error.code!r})", at[0]) from error
    except BaseException as error:  # boundary: foreign code
        lines = traceback.format_exception(error)
        raise Fault("exception", "".join(lines[-6:]).strip(), at[0]) from error


def _cache_bytes() -> int:
    sizes = [1 << 20]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) << (10 if text.endswith("K") else 20))
    return min(max(sizes), 256 << 20)


def serve(fd: int, make: Callable[[], Runner] = Runner) -> None:
    """Answer orders until the coordinator closes."""
    sock = socket.socket(fileno=fd)
    me = make()
    while True:
        try:
            order, fds = wire.recv(sock)
        except wire.Closed:
            return
        try:
            match order["do"]:
                case "load":
                    answer = me.load(order, fds)
                case "map":
                    answer = me.map(order, fds)
                case _:
                    answer = getattr(me, order["do"])(order)
        except Fault as fault:
            answer = fault.answer
        except MemoryError:
            answer = {"fault": "memory", "text": "MemoryError", "set": 0}
        answer["token"] = order["token"]
        wire.send(sock, answer)
