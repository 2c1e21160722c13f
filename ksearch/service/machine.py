"""The machine that measures, as a run's log tells it: the same words for each prompt, wherever it is rendered.

It is measured before the run begins (`ksearch.service.measuring.machine_facts`); a run begun by `ksearch new` has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ksearch.hardware import CacheLevel, Hardware, hardware_sheet
from ksearch.prompts import Limit, cpu_facts, gpu_facts

KEY = "machine"  # in the context of RunStarted
_COMPILED = {"cpp": "C++", "c": "C", "cuda": "CUDA C++"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run's log says of the machine that measures."""

    facts: Mapping[str, Any]

    @property
    def limits(self) -> dict[str, Limit]:
        """By workload, where the task states a floor."""
        return {
            w["name"]: Limit(w["binds"], w["floor_ms"], w["bytes_moved"], w["operations"])
            for w in self.facts["workloads"]
            if w["floor_ms"]
        }

    def sheet(self) -> str:
        """Half a page and a line per workload, in plain text."""
        found = dict(self.facts["hardware"])
        found |= {"simd": tuple(found["simd"]), "caches": tuple(CacheLevel(**c) for c in found["caches"])}
        lines = [hardware_sheet(Hardware(**found), self.facts["ceilings"], self.facts["threads"])]
        if self.facts["device"] and "cpu" not in _kind(self.facts):
            lines.insert(0, f"GPU: {self.facts['device']}{_about(self.facts.get('gpu') or {})}")
        for language, made in self.facts["compilers"].items():
            lines.append(f"Compiler for {_COMPILED.get(language, language)}: {made['version']}; {made['command']}")
        if self.facts["workloads"]:
            lines.append(
                "Before the search (a rough first look: baseline as the best of two calls with warm caches; a busy "
                "machine shows less than it can do):"
            )
            rates = self.facts["ceilings"].get("bytes_per_s") or [0]
            lines += [_line(w) + _from_memory(w, rates[-1]) for w in self.facts["workloads"]]
        return "\n".join(lines)

    def known(self) -> str:
        """Public facts of the processor that computes, after what was measured."""
        if "cpu" not in _kind(self.facts):
            return gpu_facts(self.facts["device"], (self.facts.get("gpu") or {}).get("capability"))
        return cpu_facts(self.facts["hardware"]["model"], self.facts["hardware"]["simd"])


def _about(gpu: Mapping[str, Any]) -> str:
    """, compute capability 9.0, 132 multiprocessors, L2 50 MiB, 140 GiB; torch 2.11, CUDA 13.0."""
    told = []
    if gpu.get("capability"):
        told.append(f"compute capability {'.'.join(map(str, gpu['capability']))}")
    if gpu.get("multiprocessors"):
        told.append(f"{gpu['multiprocessors']} multiprocessors")
    if gpu.get("l2_bytes"):
        told.append(f"L2 {gpu['l2_bytes'] / 2**20:.0f} MiB")
    if gpu.get("total_bytes"):
        told.append(f"{gpu['total_bytes'] / 2**30:.0f} GiB")
    software = [f"{name} {gpu[key]}" for name, key in (("torch", "torch"), ("CUDA", "cuda")) if gpu.get(key)]
    return "".join(f", {fact}" for fact in told) + (f"; {', '.join(software)}" if software else "")


def _kind(facts: Mapping[str, Any]) -> str:
    return (
        "cuda" if "cuda" in facts["compilers"] or isinstance(facts["ceilings"].get("operations_per_s"), dict) else "cpu"
    )


def _line(w: Mapping[str, Any]) -> str:
    """large: baseline 6.1 ms (2 GB/s); floor 0.096 ms, bound by memory (12 MB at 125 GB/s)."""
    told = []
    if took := w["baseline_ms"]:
        told.append(f"baseline {took:.4g} ms{_reached(w, took)}")
    if floor := w["floor_ms"]:
        told.append(f"floor {floor:.4g} ms, set by {w['binds']}: {_at(w, floor)}")
    return f"- {w['name']}: {'; '.join(told) or 'nothing known'}"


def _at(w: Mapping[str, Any], took_ms: float) -> str:
    if w["binds"] == "memory":
        return f"{w['bytes_moved'] / 1e6:.3g} MB at {w['bytes_moved'] / took_ms / 1e6:.3g} GB/s"
    return f"{w['operations'] / 1e6:.3g} Mop at {w['operations'] / took_ms / 1e6:.3g} GFLOP/s"


def _from_memory(w: Mapping[str, Any], bytes_per_s: float) -> str:
    """Inputs are flushed before timed calls: where the floor rests on a cache's rate, a kernel cannot come near it."""
    least_ms = 1e3 * w["bytes_moved"] / bytes_per_s if bytes_per_s else 0.0
    if not w["floor_ms"] or least_ms < 1.1 * w["floor_ms"]:
        return ""
    return f"; from memory, at the {bytes_per_s / 1e9:.3g} GB/s of the largest working set, {least_ms:.4g} ms"


def _reached(w: Mapping[str, Any], took_ms: float) -> str:
    rates = [
        f"{amount / took_ms / 1e6:.3g} {unit}"
        for amount, unit in ((w["bytes_moved"], "GB/s"), (w["operations"], "GFLOP/s"))
        if amount
    ]
    return f" ({', '.join(rates)})" if rates else ""


def machine_of(context: Mapping[str, str]) -> Machine | None:
    """None: the run was begun where nothing is measured (`ksearch new`)."""
    text = context.get(KEY)
    return Machine(json.loads(text)) if text else None
