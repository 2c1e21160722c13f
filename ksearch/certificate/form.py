"""What a certificate is: one line of canonical JSON whose last word is the SHA-256 of all the rest."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ksearch.types import Verdict

FORMAT: Literal["ksearch-certificate/1"] = "ksearch-certificate/1"
HASH_FIELD = "sha256"

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Ms = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class RatioForm(Strict):
    """Other time / own time, with its 95% interval: above 1 means that the program is faster than the other."""

    value: Positive
    low: Positive
    high: Positive


class ProgramForm(Strict):
    language: str
    entry_point: str
    sources: dict[str, str]
    sources_sha256: dict[str, Sha]


class Lane(Strict):
    """Times of one program on one workload, in ms: turns of calls. Turn i of all lanes is one round: a pair."""

    program: Sha
    role: Literal["candidate", "baseline", "against"]
    turns: Annotated[list[Annotated[list[Ms], Field(min_length=1)]], Field(min_length=1)]


class WorkloadForm(Strict):
    name: str
    axes: dict[str, int]
    verdict: Verdict
    reason: str
    lanes: list[Lane]
    median_ms: Ms | None
    baseline_ms: Ms | None
    against_ms: dict[Sha, Ms]
    speedup: RatioForm | None  # over the baseline
    against: dict[Sha, RatioForm]
    floor_ms: Ms | None
    floor_share: Ms | None  # floor / median: 1 would be the fastest possible
    max_abs_error: Ms | None
    max_rel_error: Ms | None


class Seeds(Strict):
    """Of the last values in each buffer; drawn from the system's entropy, given away when the runner was dead."""

    first: dict[str, list[str]]
    confirmation: dict[str, list[str]]


class ResultForm(Strict):
    program: Sha
    verdict: Verdict
    reason: str
    stage: str
    log: str
    flags: list[str]
    confirmed: bool  # in fresh processes, on unseen seeds and shapes
    unseen_shapes: list[dict[str, int]]
    latency_ms: Ms | None
    speedup: RatioForm | None
    against: dict[Sha, RatioForm]
    workloads: list[WorkloadForm]
    build_command: list[str]
    library_sha256: Sha | None
    sandbox_level: str
    sandbox_rungs: list[str]
    seeds: Seeds
    seconds: Ms


class TaskForm(Strict):
    name: str
    hash: Sha
    mean: Literal["geometric", "arithmetic"]
    threads: int
    timed: list[str]  # workloads that are timed, each with a row in every passing result
    limits: dict[str, float]


class ConditionsForm(Strict):
    governor: str
    clocks_mhz: list[float]
    load_1: float | None
    load_5: float | None
    temperature_c: float | None
    boost: str


class GpuForm(Strict):
    """The GPU as it was when the last program had been measured; null where the driver does not tell."""

    name: str
    driver: str
    torch: str
    cuda: str
    sm_mhz: int | None
    memory_mhz: int | None
    max_sm_mhz: int | None
    temperature_c: int | None
    power_w: Annotated[float, Field(ge=0)] | None
    throttle_reasons: int | None


class MachineForm(Strict):
    cpu: str
    cores: int
    usable_cores: int
    architecture: str
    kernel: str
    last_level_cache_bytes: int
    gpu: GpuForm | None = None  # of tasks for GPUs
    before: ConditionsForm
    after: ConditionsForm


class Toolchain(Strict):
    compiler: str  # first line of its --version
    flags: list[str]
    python: str
    numpy: str
    ksearch: str


class Method(Strict):
    """How the numbers follow from the samples; `check-certificate` repeats it."""

    pairs: str
    centre: str
    interval: str
    bootstrap_seed: int
    time_budget_s: float
    confirm_budget_s: float


class Certificate(Strict):
    format: Literal["ksearch-certificate/1"]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    task: TaskForm
    programs: dict[Sha, ProgramForm]
    baseline: Sha
    against: list[Sha]
    results: Annotated[list[ResultForm], Field(min_length=1)]
    passed: bool
    problems: list[str]  # why not passed; empty when passed
    machine: MachineForm
    toolchain: Toolchain
    method: Method
    sha256: Sha


def canonical(body: Any) -> bytes:
    """Sorted keys, no blanks, UTF-8.

    Raises:
        ValueError: a number that is not finite, or text that is not Unicode.
    """
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(body: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON without the field `sha256`."""
    return hashlib.sha256(canonical({k: v for k, v in body.items() if k != HASH_FIELD})).hexdigest()


def seal(body: dict[str, Any]) -> bytes:
    """The file's bytes: `body` with its hash."""
    return canonical({**body, HASH_FIELD: digest(body)}) + b"\n"
