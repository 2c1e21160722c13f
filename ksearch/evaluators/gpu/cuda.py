"""The few CUDA calls that torch does not offer: memory of one's own, sharing it between processes, events, the gate.

By ctypes on the runtime library that torch has loaded, so nothing has to be compiled and both work in one context.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import torch

BLOCK = 2 << 20  # the driver maps whole blocks of so many bytes into a process that opens a handle
_OUT_OF_MEMORY = 2
_MAPPED = 2

# Holds a stream until the host sets a word, at most `limit` nanoseconds. It fills every multiprocessor with threads,
# so that nothing else of this process starts meanwhile, on whatever stream.
_GATE = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry gate(.param .u64 word, .param .u64 limit)
{
 .reg .pred %p;
 .reg .b64 %a, %t0, %t1, %d, %l;
 .reg .b32 %v, %x;
 mov.u32 %x, %tid.x;
 setp.ne.u32 %p, %x, 0;
 @%p bra WAIT;
 ld.param.u64 %a, [word];
 ld.param.u64 %l, [limit];
 mov.u64 %t0, %globaltimer;
LOOP:
 ld.volatile.global.u32 %v, [%a];
 setp.ne.u32 %p, %v, 0;
 @%p bra WAIT;
 mov.u64 %t1, %globaltimer;
 sub.u64 %d, %t1, %t0;
 setp.lt.u64 %p, %d, %l;
 @%p bra LOOP;
WAIT:
 bar.sync 0;
 ret;
}
\0"""


class CudaError(Exception):
    """A call failed; after some errors nothing works any more in this process."""


class CudaMemory(MemoryError):
    """The GPU has no memory left for this."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


class _Shared:
    """What `torch.as_tensor` asks of memory that is not its own."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3, "strides": None,
        }  # fmt: skip


def view(address: int, size: int) -> torch.Tensor:
    """This memory as bytes, owned by whoever allocated it."""
    if size == 0:
        return torch.empty(0, dtype=torch.uint8, device="cuda")
    return torch.as_tensor(_Shared(address, size), device="cuda")


def _library() -> str:
    """The runtime library that is loaded already."""
    found = re.findall(r"(\S*libcudart[^\s/]*\.so[^\s/]*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    return str(found[0]) if found else "libcudart.so"


class Cuda:
    """Starts CUDA in this process, on the first GPU that it may see.

    Raises:
        CudaError: there is no GPU, or no driver.
    """

    def __init__(self) -> None:
        try:
            torch.cuda.init()
            torch.empty(1, device="cuda")
        except (RuntimeError, AssertionError) as error:
            raise CudaError(f"CUDA does not start: {str(error).strip().splitlines()[0]}") from error
        self.runtime = ctypes.CDLL(_library())
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.runtime.cudaGetErrorString.restype = ctypes.c_char_p
        self.runtime.cudaIpcOpenMemHandle.argtypes = [ctypes.POINTER(ctypes.c_void_p), _Handle, ctypes.c_uint]

    def call(self, name: str, *arguments: Any) -> None:
        """Call `name` of the runtime library.

        Raises:
            CudaError, CudaMemory: with CUDA's own words.
        """
        code = getattr(self.runtime, name)(*arguments)
        if code:
            self.runtime.cudaGetLastError()
            text = f"CUDA error: {self.runtime.cudaGetErrorString(code).decode()} ({code}, {name})"
            raise CudaMemory(text) if code == _OUT_OF_MEMORY else CudaError(text)

    def allocate(self, size: int) -> int:
        """Memory that shares no block with any other, so that sharing it shares nothing else."""
        address = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(max(1, -(-size // BLOCK)) * BLOCK))
        assert address.value is not None
        return address.value

    def free(self, address: int) -> None:
        self.call("cudaFree", ctypes.c_void_p(address))

    def handle(self, address: int) -> str:
        """What another process needs to open this memory."""
        found = _Handle()
        self.call("cudaIpcGetMemHandle", ctypes.byref(found), ctypes.c_void_p(address))
        return ctypes.string_at(ctypes.byref(found), 64).hex()

    def open(self, handle: str) -> int:
        address = ctypes.c_void_p()
        self.call(
            "cudaIpcOpenMemHandle", ctypes.byref(address), _Handle.from_buffer_copy(bytes.fromhex(handle)),
            ctypes.c_uint(1),
        )  # fmt: skip
        assert address.value is not None
        return address.value

    def shut(self, address: int) -> None:
        self.call("cudaIpcCloseMemHandle", ctypes.c_void_p(address))

    def extent(self, address: int) -> tuple[int, int]:
        """(start, bytes) of what is mapped around `address`."""
        start, size = ctypes.c_uint64(), ctypes.c_size_t()
        code = self.driver.cuMemGetAddressRange_v2(
            ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address)
        )  # fmt: skip
        if code:
            raise CudaError(f"cuMemGetAddressRange: {code}")
        return start.value, size.value

    def synchronize(self) -> None:
        """Wait for the whole device: every stream of this process."""
        self.call("cudaDeviceSynchronize")

    def event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.call("cudaEventCreateWithFlags", ctypes.byref(made), ctypes.c_uint(0))
        return made

    def elapsed_ns(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> int:
        ms = ctypes.c_float()
        self.call("cudaEventElapsedTime", ctypes.byref(ms), start, end)
        return round(ms.value * 1e6)


class Gate:
    """Holds everything that this process starts on the GPU until it is opened, or `limit_ns` have passed."""

    def __init__(self, cuda: Cuda) -> None:
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._driver = cuda.driver
        for code in (
            self._driver.cuModuleLoadData(ctypes.byref(module), _GATE),
            self._driver.cuModuleGetFunction(ctypes.byref(self._function), module, b"gate"),
        ):
            if code:
                raise CudaError(f"the gate's kernel cannot be loaded: driver error {code}")
        host, device = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.call("cudaHostAlloc", ctypes.byref(host), ctypes.c_size_t(4096), ctypes.c_uint(_MAPPED))
        cuda.call("cudaHostGetDevicePointer", ctypes.byref(device), host, ctypes.c_uint(0))
        self._word = ctypes.c_uint32.from_address(host.value or 0)
        self._address, self._limit = ctypes.c_uint64(device.value or 0), ctypes.c_uint64(0)
        self._arguments = (ctypes.c_void_p * 2)(ctypes.addressof(self._address), ctypes.addressof(self._limit))
        about = torch.cuda.get_device_properties(0)
        self._blocks = about.multi_processor_count * (about.max_threads_per_multi_processor // 1024)

    def close(self, limit_ns: int) -> None:
        """From here on the default stream waits."""
        self._word.value, self._limit.value = 0, limit_ns
        code = self._driver.cuLaunchKernel(
            self._function, self._blocks, 1, 1, 1024, 1, 1, 0, None, self._arguments, None
        )  # fmt: skip
        if code:
            raise CudaError(f"the gate's kernel cannot be launched: driver error {code}")

    def open(self) -> None:
        self._word.value = 1
