"""Every defence has a name, so that a test can switch one off and prove that its cheat then succeeds."""

from __future__ import annotations

from enum import StrEnum


class Defence(StrEnum):
    """What is switched off by naming it in `EvaluatorOptions.disabled`; the comment says what it stops."""

    # judging
    ELEMENTWISE = "elementwise"  # some elements wrong while the norm looks fine
    NORM = "norm"  # everything a little wrong: constants and zeros within an absolute tolerance
    NON_FINITE = "non_finite"  # NaN or infinity as a wildcard that compares equal to anything
    EXACT_TYPE = "exact_type"  # ndarray subclasses and lazy objects that compute when compared
    INPUT_HASH = "input_hash"  # zeroing, overwriting or overrunning inputs
    CANARY = "canary"  # writing past the end of an output
    POISON = "poison"  # leaving old memory in place and calling it a result
    SECOND_POISON = "second_poison"  # computing only where the poison is of one kind; luck with a race
    AWKWARD = "awkward"  # code that is right only for well-behaved values
    PRECISION = "precision"  # silently computing in a lower precision than the task allows
    # state kept between calls
    FRESH_VALUES = "fresh_values"  # a cached output, by fingerprint of the values or by call count
    FRESH_ADDRESSES = "fresh_addresses"  # a cached output, by pointer
    TIMED_OUTPUTS = "timed_outputs"  # work done only when checked, skipped when timed
    STALE_OUTPUT = "stale_output"  # one output buffer handed out again and again
    LATE_WRITE = "late_write"  # a background thread that finishes the work after the answer
    # time
    CACHE_FLUSH = "cache_flush"  # times of data that still sat in the cache
    OUTSIDE_FLUSH = "outside_flush"  # work hidden in the flushing of caches: the oracle does it, not the runner
    OUTSIDE_CLOCK = "outside_clock"  # patched clocks and forged per-call times
    FLOOR = "floor"  # times that no machine could reach
    STOP_OFF_TURN = "stop_off_turn"  # slowing down the baseline, or working, while others are timed
    CONFIRM = "confirm"  # memorised workloads: fresh processes, unseen seeds and shapes
    # protocol
    REPLY_TOKEN = "reply_token"  # forged or extra answers on the runner's descriptor
    REPLY_CAP = "reply_cap"  # answers of unbounded length
    OUTPUT_CAP = "output_cap"  # output floods
    CLOSED_DESCRIPTORS = "closed_descriptors"  # reaching the evaluator through inherited descriptors
    ENVIRONMENT = "environment"  # keys and paths in the environment
    FORBIDDEN_SCAN = "forbidden_scan"  # a wrapper around a library that the task forbids
    # sandbox
    UID_DROP = "uid_drop"  # acting as root: reading other processes, writing everywhere
    NAMESPACES = "namespaces"  # network, other processes, the host's temporary and home folders
    LANDLOCK = "landlock"  # files outside the private folder and the system's own
    SECCOMP = "seccomp"  # new processes and threads, ptrace, sockets
    LIMIT_MEMORY = "limit_memory"  # memory hogs
    LIMIT_PROCESSES = "limit_processes"  # fork bombs
    LIMIT_FILES = "limit_files"  # disk fillers
    PINNED_CPU = "pinned_cpu"  # threads on cores that the task does not grant
