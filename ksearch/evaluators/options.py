"""How an evaluator measures; nothing here belongs to the task."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ksearch.evaluators.defences import Defence
from ksearch.types import check, check_number

SANDBOXES = ("auto", "no_namespaces", "limits")
PROFILES = ("never", "best", "always")


@dataclass(frozen=True, slots=True)
class EvaluatorOptions:
    """Times in seconds. `disabled` is for the red team only: it needs `testing=True` and marks every result."""

    time_budget_s: float = 2.0  # timing of one candidate, all workloads together, without the confirmation
    time_cap_s: float = 4.0  # where the machine is so noisy that the budget gives a wide interval
    min_rounds: int = 10  # pairs per workload at least; fewer only where the budget forbids
    max_rounds: int = 200
    target_half_width: float = 0.004  # stop when the 95% interval of the log ratio is this narrow
    wide_half_width: float = 0.01  # an interval wider than this is worth more than the budget
    call_target_ms: float = 1.0  # calls of one turn are queued until they take about this long
    confirm: bool = True  # measure a new best again in fresh processes on unseen seeds and shapes
    confirm_all: bool = False  # confirm every program that passes, not only a new best: for `ksearch verify`
    confirm_budget_s: float = 1.5
    counters: bool = False  # profiles with hardware counters too: by `ncu`, behind a weaker fence, see gpu.counters
    profile: str = "never"  # after the verdict, on GPUs: never, best (each new best), always (what passes)
    outside_batch_ms: float = 50.0  # length of the queued calls that the outside clock judges
    screen_ratio: float = 0.4  # hopeless: surely under this fraction of the incumbent's speed
    compiler: str = "g++"
    compiler_flags: tuple[str, ...] = ("-O3", "-march=native", "-std=c++20", "-shared", "-fPIC")
    cuda_compiler: str = "nvcc"
    cuda_flags: tuple[str, ...] = ("-O3", "-std=c++17", "-lineinfo", "-shared", "-Xcompiler=-fPIC")
    builds_at_once: int = 2
    sandbox: str = "auto"  # or a lower rung of the ladder, to see what it does: no_namespaces, limits
    lease: Path | None = None  # lock file for timing; None = one for the machine
    gpu: str | None = None  # UUID of the one to measure on; None = the first that is visible
    cores: tuple[int, ...] | None = None  # of the host, for this evaluator; None = all
    cache: Path | None = None  # compiled baselines and measured ceilings; None = the user's cache folder
    disabled: frozenset[Defence] = field(default_factory=frozenset)
    testing: bool = False

    def __post_init__(self) -> None:
        check(self.sandbox in SANDBOXES, f"sandbox must be one of {', '.join(SANDBOXES)}, got {self.sandbox!r}")
        check(self.profile in PROFILES, f"profile must be one of {', '.join(PROFILES)}, got {self.profile!r}")
        check(
            self.testing or not self.disabled,
            f"defences can be switched off only by the red team (testing=True): {sorted(self.disabled)}",
        )
        check(2 <= self.min_rounds <= self.max_rounds, "min_rounds must be at least 2 and at most max_rounds")
        for name in ("time_budget_s", "confirm_budget_s", "call_target_ms", "outside_batch_ms"):
            check_number(name, getattr(self, name), 0)
        object.__setattr__(self, "disabled", frozenset(Defence(d) for d in self.disabled))

    def on(self, defence: Defence) -> bool:
        return defence not in self.disabled
