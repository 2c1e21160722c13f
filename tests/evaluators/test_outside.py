"""The outside clock's judgement, on made-up turns: honest noise raises no doubt, hidden work does."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from ksearch.evaluators.outside import Claims, doubt, hidden_share

CALLS, CALL_NS, BESIDE_NS = 16, 100_000, 900_000
Turns = tuple[Claims, list[dict[str, Any]]]


def turns(seed: int, *, hidden: float = 0.0, hidden_queued: float = 0.0, load: float = 0.0) -> Turns:
    """`hidden`: fraction of the true time that the process does not report; `load`: share of disturbed turns."""
    rng = random.Random(seed)

    def noise() -> int:
        return int(rng.expovariate(1 / 20_000)) + (int(rng.expovariate(1 / 3e6)) if rng.random() < load else 0)

    def turn(part: float) -> tuple[list[int], int]:
        true = [CALL_NS + int(rng.expovariate(1 / 2_000)) for _ in range(CALLS)]
        return [int(t * (1 - part)) for t in true], sum(true) + BESIDE_NS + noise()

    mine = [turn(hidden) for _ in range(12)]
    base = [turn(0) for _ in range(12)]
    queued = [(turn(hidden_queued), turn(0)) for _ in range(4)]
    claims = Claims(
        CALLS, CALLS, False, 4096, [t[0] for t in mine], [t[1] for t in mine], CALL_NS * (1 - hidden),
        [t[0] for t in base], [t[1] for t in base], CALL_NS,
    )  # fmt: skip
    batches = [
        {"calls": CALLS, "outside_ns": m[1], "reported_ns": sum(m[0]), "baseline_outside_ns": b[1],
         "baseline_reported_ns": sum(b[0])} for m, b in queued
    ]  # fmt: skip
    return claims, batches


@pytest.mark.parametrize("load", [0.0, 0.3])
def test_an_honest_process_raises_no_doubt(load: float) -> None:
    assert [doubt(*turns(seed, load=load)) for seed in range(50)].count("") == 50


@pytest.mark.parametrize("load", [0.0, 0.3])
def test_hidden_time_is_seen_in_every_run(load: float) -> None:
    for seed in range(50):
        assert "beside the" in doubt(*turns(seed, hidden=0.3, load=load))


def test_hidden_time_of_queued_calls_is_seen() -> None:
    assert "queued calls took" in doubt(*turns(1, hidden=0.5, hidden_queued=0.5))


def test_calls_that_are_fast_only_when_timed_alone_are_doubted() -> None:
    claims, batches = turns(2)
    alone = [[n // 4 for n in turn] for turn in claims.reported]
    seen = [s - 3 * sum(turn) // 4 for s, turn in zip(claims.seen, claims.reported, strict=True)]
    cheat = replace(claims, reported=alone, seen=seen, quick_ns=claims.quick_ns / 4)
    assert "when queued" in doubt(cheat, batches)


EMPTY_NS = 200_000  # of processor time, for a turn without calls


def exact(seed: int, *, hidden: float = 0.0, load: float = 0.0) -> Claims:
    """By processor time: what a process waits for is in what it reports, not in what is seen."""
    rng = random.Random(seed)
    reported, seen = [], []
    for _ in range(8):
        work = [CALL_NS + int(rng.expovariate(1 / 2_000)) for _ in range(CALLS)]
        waited = int(rng.expovariate(1 / 3e6)) if rng.random() < load else 0
        claimed = [int(t * (1 - hidden)) for t in work]
        claimed[0] += waited
        reported.append(claimed)
        seen.append(sum(work) + int(EMPTY_NS * rng.uniform(0.8, 1.2)))
    empty = [int(EMPTY_NS * rng.uniform(0.7, 1.3)) for _ in range(20)]
    calm = sorted(range(8), key=lambda n: sum(reported[n]))[:4]
    return Claims(
        CALLS, CALLS, False, 4096, [reported[n] for n in calm], [seen[n] for n in calm], CALL_NS * (1 - hidden),
        [[] for _ in empty], empty, CALL_NS, exact=True,
    )  # fmt: skip


@pytest.mark.parametrize("load", [0.0, 0.5, 1.0])
def test_by_processor_time_load_raises_no_doubt(load: float) -> None:
    assert [doubt(exact(seed, load=load), []) for seed in range(50)].count("") == 50


def test_by_processor_time_a_third_of_the_work_cannot_be_hidden() -> None:
    assert all("beside the" in doubt(exact(seed, hidden=0.3), []) for seed in range(50))
    assert all(hidden_share(exact(seed, hidden=0.5)) > 0.3 for seed in range(50))
