"""Reads what a 64-bit little-endian shared object exports, imports and needs. No binutils required."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbols:
    exported: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


def read_symbols(data: bytes) -> Symbols:
    """Empty where `data` is not such a file, or is damaged."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError):
        return Symbols()


def _read(data: bytes) -> Symbols:
    if data[:6] != b"\x7fELF\x02\x01":
        return Symbols()
    start, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    exported: list[str] = []
    imported: list[str] = []
    needed: list[str] = []
    for kind, offset, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind == 11:  # dynamic symbols
            for at in range(offset + 24, offset + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", data, at)
                (imported if section == 0 else exported).append(_text(data, sections[link][4] + name))
        elif kind == 6:  # dynamic section
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == 1:
                    needed.append(_text(data, sections[link][4] + value))
    return Symbols(tuple(sorted(exported)), tuple(sorted(imported)), tuple(needed))


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")
