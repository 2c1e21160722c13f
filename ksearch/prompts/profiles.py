"""Profiles in words: where a call's time goes, for planner, writer and people. Kernel names are foreign text."""

from __future__ import annotations

from ksearch.prompts.text import cell, ms, one_line
from ksearch.types import Evaluation, Kernel, Profile

KERNELS = 4
_NAME_CHARS = 60


def profile_lines(done: Evaluation | None) -> str:
    """A line or two for each workload that was profiled; empty where none was."""
    told = [line for profile in (done.profiles if done else ()) if profile.bound for line in one_profile(profile)]
    if not told:
        return ""
    head = "Profile of one call each (as the program's own process tells it: advice, nothing was decided by it):"
    return "\n".join([head, *told])


def one_profile(profile: Profile) -> list[str]:
    """large: bound by memory: ...; kernels: softmax_kernel 0.52 ms."""
    where = cell(profile.workload)
    if not profile.bound:
        return [f"- {where}: {one_line(profile.summary, 300)}"]
    lines = [f"- {where}: bound by {cell(profile.bound, 20)}: {one_line(profile.summary, 400)}"]
    named = ", ".join(_kernel(k) for k in profile.kernels[:KERNELS])
    more = f" and {len(profile.kernels) - KERNELS} more" if len(profile.kernels) > KERNELS else ""
    lines += [f"  kernels: {named}{more}"] if named else []
    counted = ", ".join(f"{cell(name, 30)} {value:.0f}%" for name, value in profile.counters.items())
    return lines + ([f"  counters of the longest, in percent of the peak: {counted}"] if counted else [])


def _kernel(kernel: Kernel) -> str:
    several = f" x {kernel.launches}" if kernel.launches != 1 else ""
    return f"'{cell(kernel.name, _NAME_CHARS)}'{several} {ms(kernel.ms)} ms"
