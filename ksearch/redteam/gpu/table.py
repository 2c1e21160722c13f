"""Every cheat on a GPU, by kind. A new one is a file in `cheats/` and a row here."""

from __future__ import annotations

from typing import Any

from ksearch.evaluators.defences import Defence as D
from ksearch.redteam.cheat import Cheat
from ksearch.types import Verdict as V

WRONG = (V.WRONG_VALUES, V.NON_FINITE, V.STALE_OUTPUT)
TIMED = ("screen", "time")
EARLY = ("smoke", "check")
ANY = ("smoke", "check", "screen", "time", "confirm")
VALUES = (D.ELEMENTWISE, D.NORM, D.PRECISION)


def _row(
    file: str, verdicts: tuple[V, ...], stages: tuple[str, ...], *defences: D, variant: str = "plain", **more: Any
) -> Cheat:
    return Cheat(file, verdicts, stages, defences, variant, device="cuda", **more)


STATE = (
    _row("cached_by_pointer.py", WRONG, ("check", *TIMED), D.FRESH_VALUES, D.AWKWARD),
    _row("cached_by_address.cu", WRONG, ("check", *TIMED), D.FRESH_VALUES, D.AWKWARD),
    _row("tuned_result.py", WRONG, ("check", *TIMED), D.FRESH_VALUES, D.AWKWARD),
    _row("cached_by_fingerprint.py", (V.PASSED,), ANY, D.FRESH_VALUES, saves=True),
    _row("weights_kept.py", WRONG, ("check", *TIMED), D.FRESH_VALUES, D.AWKWARD),
    _row("last_output.py", WRONG, TIMED, D.FRESH_VALUES, D.FRESH_ADDRESSES),
    _row("leftover_memory.py", WRONG, TIMED, D.FRESH_VALUES, D.FRESH_ADDRESSES),
    _row("stops_after_forty.cu", WRONG, TIMED, D.TIMED_OUTPUTS),
    _row("works_when_checked.py", WRONG, TIMED, D.TIMED_OUTPUTS),
    _row("fills_only_nan.cu", WRONG, ("check",), D.SECOND_POISON, D.TIMED_OUTPUTS, D.AWKWARD),
    _row("forgets_to_reset.cu", WRONG, ("check",), D.SECOND_POISON),
    _row("scratch_in_old_output.py", (V.LATE_WRITE,), ("time",), D.LATE_WRITE),
    _row("stale_graph.py", WRONG, EARLY, *VALUES),
    _row("one_buffer.py", (V.STALE_OUTPUT,), ("check",), because="a result where another call's lies is refused"),
    _row("side_stream.py", (V.PASSED, V.FORGED), ANY, saves=True, because="the whole device is waited for"),
    _row("own_stream.cu", (V.PASSED, V.FORGED), ANY, saves=True, because="the whole device is waited for"),
    _row("background_thread.py", (*WRONG, V.LATE_WRITE, V.FORGED), TIMED, D.TIMED_OUTPUTS, D.OUTSIDE_CLOCK),
    _row("guessed_seed.py", WRONG, ("smoke",), because="seeds are 63 random bits, fresh for every call"),
)

RESULTS = (
    _row("zeros.py", (V.WRONG_VALUES,), ("smoke",), D.NORM, variant="naive tolerance"),
    _row("constant.cu", (V.WRONG_VALUES,), ("smoke",), D.NORM, variant="naive tolerance"),
    _row("nan_everywhere.cu", (V.NON_FINITE,), ("smoke",), D.NON_FINITE),
    _row("input_returned.py", (V.WRONG_VALUES,), ("smoke",), *VALUES),
    _row("in_place.py", (V.INPUT_CHANGED,), ("smoke",), D.INPUT_HASH),
    _row("zeroed_inputs.cu", (V.INPUT_CHANGED,), ("smoke",), D.INPUT_HASH),
    _row("overrun.cu", (V.RUNTIME_ERROR,), ("smoke",), D.CANARY),
    _row("no_maximum.cu", WRONG, ("check",), D.AWKWARD),
    _row("bfloat16.py", (V.LOWER_PRECISION,), ("check",), D.PRECISION, variant="coarse tolerance"),
    _row("tf32.py", (V.LOWER_PRECISION,), ("check",), D.PRECISION, variant="coarse tolerance"),
    _row("tf32_dot.py", (V.LOWER_PRECISION,), ("check",), D.PRECISION, variant="coarse tolerance"),
    _row("lazy_tensor.py", (V.WRONG_DTYPE,), ("smoke",), D.EXACT_TYPE, D.OUTSIDE_CLOCK),
    _row("double_result.py", (V.WRONG_DTYPE,), ("smoke",), D.EXACT_TYPE),
    _row("one_row_for_all.py", (V.WRONG_SHAPE,), ("smoke",), because="shapes are compared before values"),
    _row("library_call.py", (V.FORBIDDEN_LIBRARY,), ("build",), D.FORBIDDEN_SCAN, variant="no library"),
    _row("listed_sizes_only.py", WRONG, ("confirm",), D.CONFIRM),
)

CLOCKS = (
    _row("patched_elapsed_time.py", (V.PASSED,), ANY, saves=True, because="torch's events time nothing here"),
    _row("patched_statistics.py", (V.PASSED,), ANY, saves=True, because="no figure is made in the program's process"),
    _row("frozen_clock.py", (V.FORGED,), ("time",), D.OUTSIDE_CLOCK),
    _row("patched_runner.py", (V.FORGED,), ("time",), D.OUTSIDE_CLOCK),
    _row("patched_by_gc.py", (V.FORGED,), ("time",), D.OUTSIDE_CLOCK),
    _row("patched_by_frames.py", (V.FORGED,), ("time",), D.OUTSIDE_CLOCK),
    _row("time_near_zero.py", (V.FORGED, V.TOO_FAST), ("time",), D.OUTSIDE_CLOCK, D.FLOOR, variant="floored"),
    _row("works_in_collect.py", (V.PASSED, V.FORGED), ANY, D.OUTSIDE_CLOCK, D.FLOOR, variant="floored", saves=True),
    _row("persisting_l2.cu", (V.PASSED,), ANY, saves=True, because="persisting lines are reset before each call"),
)

ANSWERS = (
    _row("forged_answer.py", (V.FORGED,), ("smoke",), D.REPLY_TOKEN, D.OUTSIDE_CLOCK),
    _row("exit_at_import.py", (V.FORGED,), ("smoke",), because="an exit code is no answer"),
    _row("exit_in_call.cu", (V.FORGED,), ("smoke",), because="an exit code is no answer"),
    _row("segfault.cu", (V.RUNTIME_ERROR,), ("smoke",), because="one disposable process per program"),
    _row("reads_neighbours.py", (V.PASSED,), ANY, steals=True, because="shared memory shares no block with other"),
    _row("others_leavings.py", (V.PASSED,), ANY, steals=True, because="the driver wipes memory that changes hands"),
    _row("reads_environment.py", (V.PASSED,), ANY, D.ENVIRONMENT, steals=True),
    _row("output_flood.py", (V.RUNTIME_ERROR,), ("smoke",), D.OUTPUT_CAP),
)

LIMITS = (
    _row(
        "endless_kernel.cu",
        (V.TIMEOUT, V.HANG),
        ("smoke",),
        variant="impatient",
        alone=True,
        because="stages have limits",
    ),
    _row("host_hang.py", (V.HANG,), ("smoke",), variant="impatient", because="stages have limits"),
    _row("illegal_address.cu", (V.RUNTIME_ERROR,), ("smoke",), because="one disposable process per program"),
    _row("failed_launch.cu", (V.NON_FINITE, V.WRONG_VALUES), ("smoke",), because="what lies in outputs is poison"),
    _row(
        "memory_hog.py", (V.OUT_OF_MEMORY,), EARLY, alone=True, because="who took it is named when the oracle lacks it"
    ),
    _row("asks_too_much.py", (V.OUT_OF_MEMORY,), ("smoke",), because="one disposable process per program"),
)

KINDS: dict[str, tuple[Cheat, ...]] = {
    "On a GPU: state kept between calls, work left out": STATE,
    "On a GPU: values, types, precision, forbidden libraries": RESULTS,
    "On a GPU: clocks and times": CLOCKS,
    "On a GPU: answers, and what lies beside the buffers": ANSWERS,
    "On a GPU: limits": LIMITS,
}
CHEATS = tuple(cheat for kind in KINDS.values() for cheat in kind)
