"""Every cheat, by kind. A new one is a file in `cheats/` and a row here; docs/redteam.md is made from both."""

from __future__ import annotations

from ksearch.evaluators.defences import Defence as D
from ksearch.redteam.cheat import Cheat
from ksearch.types import Verdict as V

WRONG = (V.WRONG_VALUES, V.NON_FINITE, V.STALE_OUTPUT)
TIMED = ("screen", "time")
EARLY = ("smoke", "check")
ANY = ("smoke", "check", "screen", "time", "confirm")

STATE = (
    Cheat("cached_by_pointer.cpp", WRONG, ("check", *TIMED), (D.FRESH_VALUES, D.AWKWARD)),
    Cheat("cached_by_id.py", WRONG, ("check", *TIMED), (D.FRESH_VALUES, D.AWKWARD)),
    Cheat("cached_by_fingerprint.cpp", (V.PASSED,), ANY, (D.FRESH_VALUES,), saves=True),
    Cheat("weights_kept.cpp", WRONG, ("check", *TIMED), (D.FRESH_VALUES, D.AWKWARD)),
    Cheat("last_output.cpp", WRONG, TIMED, (D.FRESH_VALUES, D.FRESH_ADDRESSES)),
    Cheat("stops_after_forty.cpp", WRONG, TIMED, (D.TIMED_OUTPUTS,)),
    Cheat("works_when_checked.cpp", WRONG, TIMED, (D.TIMED_OUTPUTS,)),
    Cheat("trusts_zeroed_memory.cpp", WRONG, EARLY, (D.POISON,)),
    Cheat("fills_only_nan.cpp", WRONG, ("check",), (D.SECOND_POISON, D.TIMED_OUTPUTS, D.AWKWARD)),
    Cheat("forgets_to_reset.cpp", WRONG, ("check",), (D.SECOND_POISON,)),
    Cheat("scratch_in_old_output.cpp", (V.LATE_WRITE,), ("time",), (D.LATE_WRITE,)),
    Cheat("background_thread.cpp", (*WRONG, V.LATE_WRITE), TIMED, (D.TIMED_OUTPUTS, D.OUTSIDE_CLOCK), "two threads"),
    Cheat("late_by_signal.cpp", (*WRONG, V.LATE_WRITE, V.FORGED), TIMED, (D.TIMED_OUTPUTS, D.OUTSIDE_CLOCK)),
    Cheat("one_buffer.py", (V.STALE_OUTPUT,), ("check",), (D.STALE_OUTPUT, D.ELEMENTWISE, D.NORM, D.PRECISION)),
)

VALUES = (
    Cheat("zeros.cpp", (V.WRONG_VALUES,), ("smoke",), (D.NORM,), "naive tolerance"),
    Cheat("drops_the_tail.cpp", (V.WRONG_VALUES,), EARLY, (D.ELEMENTWISE, D.PRECISION)),
    Cheat("nan_everywhere.cpp", (V.NON_FINITE,), ("smoke",), (D.NON_FINITE,)),
    Cheat("input_copied.cpp", (V.WRONG_VALUES,), ("smoke",), (D.ELEMENTWISE, D.NORM, D.PRECISION)),
    Cheat("zeroed_inputs.cpp", (V.INPUT_CHANGED,), ("smoke",), (D.INPUT_HASH,)),
    Cheat("in_place.cpp", (V.INPUT_CHANGED,), ("smoke",), (D.INPUT_HASH,)),
    Cheat("overrun.cpp", (V.RUNTIME_ERROR,), ("smoke",), (D.CANARY,)),
    Cheat("no_maximum.cpp", WRONG, ("check",), (D.AWKWARD,)),
    Cheat("lower_precision.cpp", (V.LOWER_PRECISION,), ("check",), (D.PRECISION,), "coarse tolerance"),
    Cheat("half_precision_sum.cpp", (V.LOWER_PRECISION,), ("check",), (D.PRECISION,), "coarse tolerance"),
    Cheat("first_workload_only.cpp", WRONG, ("check",), because="every workload is checked"),
    Cheat("listed_workloads_only.cpp", WRONG, ("confirm",), (D.CONFIRM,)),
    Cheat("guessed_seed.py", WRONG, ("smoke",), because="seeds are 128 random bits, fresh for every call"),
    Cheat("lazy_object.py", (V.WRONG_DTYPE,), ("smoke",), (D.EXACT_TYPE, D.OUTSIDE_CLOCK)),
    Cheat("array_subclass.py", (V.WRONG_DTYPE,), ("smoke",), (D.EXACT_TYPE,)),
    Cheat("double_result.py", (V.WRONG_DTYPE,), ("smoke",), (D.EXACT_TYPE,)),
    Cheat("one_row_for_all.py", (V.WRONG_SHAPE,), ("smoke",), because="shapes are compared before values"),
    Cheat("library_call.cpp", (V.FORBIDDEN_LIBRARY,), ("build",), (D.FORBIDDEN_SCAN,), "no library"),
    Cheat("library_loaded.cpp", (V.FORBIDDEN_LIBRARY,), ("build",), (D.FORBIDDEN_SCAN,), "no library"),
    Cheat("library_under_another_name.py", (V.FORBIDDEN_LIBRARY,), ("build",), (D.FORBIDDEN_SCAN,), "no library"),
)

CLOCKS = (
    Cheat("patched_clock.cpp", (V.FORGED,), ("time",), (D.OUTSIDE_CLOCK,), x86=True),
    Cheat("patched_python_clock.py", (V.FORGED,), ("time",), (D.OUTSIDE_CLOCK,)),
    Cheat("patched_runner.py", (V.FORGED,), ("time",), (D.OUTSIDE_CLOCK,)),
    Cheat("patched_by_gc.py", (V.FORGED,), ("time",), (D.OUTSIDE_CLOCK,)),
    Cheat(
        "works_in_the_flush.cpp",
        (V.PASSED, V.FORGED),
        ANY,
        (D.OUTSIDE_FLUSH, D.OUTSIDE_CLOCK, D.FLOOR),
        "floored",
        saves=True,
        x86=True,
    ),
    Cheat("works_in_collect.py", (V.FORGED, V.TOO_FAST), ("time",), (D.OUTSIDE_CLOCK, D.FLOOR), "floored"),
    Cheat("burns_off_turn.py", (V.PASSED, V.FORGED), ANY, (D.STOP_OFF_TURN,), steals=True),
    Cheat("more_cores.cpp", (V.PASSED,), ANY, (D.PINNED_CPU,), steals=True, cores=2),
)

PROTOCOL = (
    Cheat("forged_answer.py", (V.FORGED,), ("smoke",), (D.REPLY_TOKEN, D.OUTSIDE_CLOCK)),
    # Making so long an answer takes processor time that the clock may see, too.
    Cheat("long_answer.py", (V.FORGED,), ("smoke",), (D.REPLY_CAP, D.OUTSIDE_CLOCK)),
    Cheat("exit_at_load.cpp", (V.FORGED,), ("smoke",), because="an exit code is no answer"),
    Cheat("exit_at_import.py", (V.FORGED,), ("smoke",), because="an exit code is no answer"),
    Cheat("exit_in_call.cpp", (V.FORGED,), ("smoke",), because="an exit code is no answer"),
    Cheat("segfault.cpp", (V.RUNTIME_ERROR,), ("smoke",), because="one disposable process per program"),
    Cheat("shrinks_buffers.cpp", (V.PASSED,), ANY, because="shared buffers are sealed", steals=True),
    Cheat("other_descriptors.py", (V.PASSED,), ANY, (D.CLOSED_DESCRIPTORS,), steals=True),
    Cheat("reads_environment.py", (V.PASSED,), ANY, (D.ENVIRONMENT,), steals=True),
    Cheat("output_flood.cpp", (V.RUNTIME_ERROR,), ("smoke",), (D.OUTPUT_CAP,)),
)

SANDBOX = (
    Cheat("endless_loop.cpp", (V.TIMEOUT, V.HANG), ("smoke",), (), "impatient", because="every stage has a limit"),
    Cheat("sleeps.cpp", (V.HANG,), ("smoke",), (), "impatient", because="every stage has a limit"),
    Cheat(
        "endless_source.cpp", (V.COMPILE_ERROR, V.TIMEOUT, V.OUT_OF_MEMORY), ("build",), (), "impatient",
        because="the builder has limits of time and memory",
    ),
    Cheat(
        "endless_templates.cpp", (V.COMPILE_ERROR, V.TIMEOUT, V.OUT_OF_MEMORY), ("build",), (), "impatient",
        because="the builder has limits of time and memory",
    ),
    Cheat("root_file_at_build.cpp", (V.COMPILE_ERROR,), ("build",), (D.UID_DROP,), steals=True, root_proof=True),
    Cheat("fork_bomb.cpp", (V.PASSED,), ANY, (D.SECCOMP, D.LIMIT_PROCESSES), steals=True),
    Cheat("memory_hog.cpp", (V.OUT_OF_MEMORY,), ("smoke",), (D.LIMIT_MEMORY,), steals=True),
    Cheat("disk_filler.cpp", (V.PASSED,), ANY, (D.LIMIT_FILES,), steals=True),
    Cheat("signals_its_parent.cpp", (V.PASSED,), ANY, (D.SECCOMP, D.UID_DROP, D.LANDLOCK, D.NAMESPACES), steals=True),
    Cheat("other_processes.py", (V.PASSED,), ANY, (D.NAMESPACES,), steals=True),
    Cheat("reads_files.py", (V.PASSED,), ANY, (D.NAMESPACES, D.LANDLOCK, D.UID_DROP), steals=True),
    Cheat("poisons_the_cache.py", (V.PASSED,), ANY, (D.NAMESPACES, D.LANDLOCK, D.UID_DROP), steals=True),
    Cheat("opens_harness_files.py", (V.PASSED,), ANY, (D.LANDLOCK, D.UID_DROP), steals=True),
    Cheat("calls_home.py", (V.PASSED,), ANY, (D.NAMESPACES, D.SECCOMP, D.LANDLOCK), steals=True),
)  # fmt: skip

KINDS: dict[str, tuple[Cheat, ...]] = {
    "State kept between calls, work left out": STATE,
    "Values, types, precision, forbidden libraries": VALUES,
    "Clocks and times": CLOCKS,
    "Answers and what is inherited": PROTOCOL,
    "Limits and the sandbox": SANDBOX,
}
CHEATS = tuple(cheat for kind in KINDS.values() for cheat in kind)
