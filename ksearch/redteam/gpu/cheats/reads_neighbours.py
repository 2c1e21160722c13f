"""Reads what lies around the buffers that it shares with the oracle."""

from __future__ import annotations

import ctypes

import torch
from honest import honest, loot

CHEAT = True
DRIVER = ctypes.CDLL("libcuda.so.1")
STEP = 2 << 20


def mapped(address: int) -> tuple[int, int]:
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    code = DRIVER.cuMemGetAddressRange_v2(ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address))
    return (start.value, size.value) if code == 0 else (0, 0)


def readable(address: int) -> bool:
    word = ctypes.c_uint64()
    return DRIVER.cuMemcpyDtoH_v2(ctypes.byref(word), ctypes.c_uint64(address), ctypes.c_size_t(8)) == 0


def look(x: torch.Tensor, y: torch.Tensor) -> None:
    start, size = mapped(x.data_ptr())
    end = y.data_ptr() + y.numel() * 4
    if start + size - end > STEP + 65536 or x.data_ptr() - start > STEP:
        loot(f"the shared block holds {size} bytes, more than the buffers in it")
    for address in (start - 8, start + size, start + size + STEP):
        if mapped(address) == (0, 0) and readable(address):
            loot(f"memory that is not mapped here can be read at {address:#x}")


def run(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    if CHEAT:
        look(x, y)
    y.copy_(honest(x, w))
