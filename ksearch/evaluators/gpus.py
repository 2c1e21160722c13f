"""Which GPUs of this host are ours: those that CUDA_VISIBLE_DEVICES leaves, by their UUIDs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ksearch.errors import EvaluatorError
from ksearch.evaluators.fleet import one_model
from ksearch.evaluators.gpu import nvml

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
Gpu = Mapping[str, Any]  # "index", "name" and "uuid" as `nvml.gpus` tells them


def label(gpu: Gpu) -> str:
    return f"GPU {gpu['index']} ({gpu['name']})"


def visible(environment: Mapping[str, str] = os.environ, gpus: Callable[[], Sequence[Gpu]] = nvml.gpus) -> list[Gpu]:
    """Those that CUDA would show to a program of ours, in its order.

    Raises:
        EvaluatorError: an entry names no GPU, a slice of one (MIG), or nobody knows which: numbers follow the order of
            speed where CUDA_DEVICE_ORDER does not say otherwise, which differs from ours when models are mixed.
    """
    here = list(gpus())
    named = environment.get(VISIBLE)
    if named is None:
        return here
    found: list[Gpu] = []
    for entry in filter(None, (part.strip() for part in named.split(","))):
        if entry == "-1":
            break  # CUDA stops reading here
        gpu = _named(entry, here)
        if entry.isdigit() and environment.get(ORDER) != "PCI_BUS_ID" and len({g["name"] for g in here}) > 1:
            raise EvaluatorError(
                f"{VISIBLE}={named} is not clear on a host with several models of GPU: CUDA counts by speed, the "
                f"driver by slot. Set {ORDER}=PCI_BUS_ID, or name UUIDs (`nvidia-smi -L`)"
            )
        if gpu not in found:
            found.append(gpu)
    return found


def _named(entry: str, here: Sequence[Gpu]) -> Gpu:
    if entry.startswith("MIG"):
        raise EvaluatorError(f"{VISIBLE} names {entry}: only whole GPUs are measured on. Name a GPU, or several")
    for gpu in here:
        if entry == str(gpu["index"]) or (entry.startswith("GPU-") and str(gpu["uuid"]).startswith(entry)):
            return gpu
    known = ", ".join(f"{g['index']} or {g['uuid']}" for g in here) or "none"
    raise EvaluatorError(f"{VISIBLE} names {entry!r}, and the GPUs of this host are {known}")


def chosen(
    count: int | None, environment: Mapping[str, str] = os.environ, gpus: Callable[[], Sequence[Gpu]] = nvml.gpus
) -> list[Gpu]:
    """So many of the visible GPUs, all of one model; None: all of them.

    Raises:
        EvaluatorError: there are fewer, or they are of different models.
    """
    found = visible(environment, gpus)
    if not found:
        hidden = f" is visible: {VISIBLE}={environment[VISIBLE]!r}" if VISIBLE in environment else ", see `nvidia-smi`"
        raise EvaluatorError(f"this task needs an NVIDIA GPU, and none{hidden}")
    if count is not None and count > len(found):
        raise EvaluatorError(f"{count} GPUs are asked for, and {len(found)} are here: lower --gpus, or leave it out")
    found = found[:count]
    one_model((label(gpu), str(gpu["name"])) for gpu in found)
    return found
