"""Which workloads a FlashInfer-Bench definition gets: those of the data set, or, where it has none, made ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksearch.definition import DTYPE_BYTES
from ksearch.errors import TaskError
from ksearch.expressions import evaluate
from ksearch.tasks.foreign.draft import Tensor
from ksearch.tasks.foreign.side import Side

# Where the data set has no workloads: three sets of sizes, small enough for any machine.
MADE: Mapping[str, tuple[int, int, int]] = {
    "M": (1, 16, 64), "batch_size": (3, 2, 8), "num_tokens": (2, 5, 12), "total_q": (9, 12, 24),
    "total_kv": (9, 20, 48), "len_indptr": (4, 3, 6), "num_kv_indices": (11, 20, 40), "num_pages": (8, 32, 64),
    "max_num_pages": (33, 34, 36), "state_cache_size": (4, 6, 10), "pool_size": (4, 6, 10), "num_seqs": (2, 3, 3),
    "total_seq_len": (7, 9, 16), "num_qo_heads": (4, 8, 8), "num_kv_heads": (1, 2, 8), "max_seq_len": (32, 64, 128),
    "seq_len": (2, 3, 4),
}  # fmt: skip
OTHERS = (1, 8, 32)
TOO_LARGE = "Too large for"
MOST_BYTES = {"cpu": 64 << 20, "cuda": 8 << 30}  # of one workload's tensors
MOST = {"cpu": (8, 4), "cuda": (16, 8)}  # workloads, timed ones


@dataclass(frozen=True)
class Sizes:
    domain: dict[str, dict[str, Any]]
    workloads: list[dict[str, Any]]
    notes: list[str]


def read_workloads(
    path: Path, axes: Sequence[str], formulas: Mapping[str, str], side: Side, tensors: Sequence[Tensor],
    constants: Mapping[str, Any], device: str, bounds: Sequence[str],
) -> Sizes:  # fmt: skip
    """Raises:
    TaskError: a line of the file is no workload.
    """
    if "workloads" in side.tables:
        given = side.tables["workloads"]
        return Sizes(_domain(axes, [w.get("axes", {}) for w in given]), given, [])
    notes: list[str] = []
    found = _usable(path, axes, formulas, constants, bounds, notes, side)
    weigh = {name: size_bytes(tensors, {**constants, **sizes}, device) for name, sizes in found}
    ordered = sorted(found, key=lambda w: weigh[w[0]])
    fitting = [w for w in ordered if weigh[w[0]] <= MOST_BYTES[device]]
    none_fits = not fitting
    if none_fits:
        fitting = ordered[:1]
        notes += too_large(tensors, {**constants, **fitting[0][1]}, device)
    most, timed = side.own.get("max_workloads", MOST[device][0]), side.own.get("max_timed", MOST[device][1])
    kept = _spread(fitting, most)
    if len(kept) < len(found) and not none_fits:
        notes.append(
            f"{len(kept)} of {len(found)} different workloads are used, spread over those that fit {_called(device)}."
        )
    on_clock = {name for name, _ in _spread(kept, timed)}
    workloads = [{"name": name, "axes": sizes} | ({} if name in on_clock else {"timed": False}) for name, sizes in kept]
    return Sizes(_domain(axes, [s for _, s in kept]), workloads, notes)


def _usable(
    path: Path,
    axes: Sequence[str],
    formulas: Mapping[str, str],
    constants: Mapping[str, Any],
    bounds: Sequence[str],
    notes: list[str],
    side: Side,
) -> list[tuple[str, dict[str, int]]]:
    """Name and sizes of each workload; those that are empty, impossible or there already are left out."""
    if path.is_file():
        found = [_checked(path, n, line, axes, formulas) for n, line in enumerate(_lines(path), 1) if line.strip()]
    else:
        found = [(f"made_{n}", {a: MADE.get(a, OTHERS)[n] for a in axes}) for n in range(3)]
        notes.append("The data set has no workloads for it: these sizes were made up.")
    if beyond := [name for name, s in found if any(evaluate(b, {**constants, **s}) < 0 for b in bounds)]:
        notes.append(f"Left out, since it is not true of them that {', '.join(bounds)} >= 0: {', '.join(beyond)}.")
        found = [w for w in found if w[0] not in beyond]
    if empty := [name for name, sizes in found if 0 in sizes.values()]:
        notes.append(f"Left out, since a tensor of theirs is empty: workloads {', '.join(empty)}.")
        found = [w for w in found if w[0] not in empty]
    found = list({tuple(sizes.items()): (name, sizes) for name, sizes in reversed(found)}.values())[::-1]
    if not found:
        raise TaskError(f"{path}: no workload in it can be used. Write [[workloads]] into {side.path}.")
    return found


def too_large(
    tensors: Sequence[Tensor], names: Mapping[str, Any], device: str, limits: Mapping[str, int] = MOST_BYTES
) -> list[str]:
    """A note, which keeps the task from being run, where the smallest workload is too large for this device."""
    least, most = size_bytes(tensors, names, device) >> 20, limits[device] >> 20
    text = f"{TOO_LARGE} {_called(device)}: the smallest workload takes {least} MiB, at most {most} are used."
    return [text] if least > most else []


def _called(device: str) -> str:
    return "a CPU" if device == "cpu" else "a GPU"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from None


def _checked(
    path: Path, number: int, line: str, axes: Sequence[str], formulas: Mapping[str, str]
) -> tuple[str, dict[str, int]]:
    where = f"{path}:{number}"
    try:
        workload = json.loads(line)["workload"]
        sizes, uuid = workload["axes"], str(workload["uuid"])
        inputs = workload.get("inputs", {})
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{where}: not a workload: {error!r}. Each line holds definition and workload.") from None
    for name, entry in inputs.items():
        kind = entry.get("type") if isinstance(entry, dict) else entry
        if kind not in ("random", "scalar", "safetensors"):
            raise TaskError(f"{where}: workload.inputs.{name}.type: {kind!r} is not known.")
    for axis in axes:
        value = sizes.get(axis)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise TaskError(f"{where}: workload.axes.{axis}: must be a whole number of at least 0, got {value!r}.")
    for axis, formula in formulas.items():
        if axis in sizes and sizes[axis] != evaluate(formula, sizes):
            raise TaskError(f"{where}: workload.axes.{axis}: is {sizes[axis]}, but the definition says {formula}.")
    return uuid[:8], {a: sizes[a] for a in axes}


def size_bytes(tensors: Sequence[Tensor], names: Mapping[str, Any], device: str) -> int:
    total = 0
    for tensor in tensors:
        dims = [d if isinstance(d, int) else int(evaluate(d, names)) for d in tensor.shape]
        total += math.prod(dims) * DTYPE_BYTES[tensor.held(device)]
    return total


def _spread(entries: list[Any], most: int) -> list[Any]:
    """At most so many, evenly from first to last."""
    if len(entries) <= most:
        return entries
    return [entries[round(i * (len(entries) - 1) / max(most - 1, 1))] for i in range(most)]


def _domain(axes: Sequence[str], sizes: Sequence[Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    return {a: {"min": min(s.get(a, 1) for s in sizes), "max": max(s.get(a, 1) for s in sizes)} for a in axes}
