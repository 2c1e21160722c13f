"""The simulation behind docs/search-quality.md, in small: what its figures rest on."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def ours(seed: int, evaluations: int = 60, **shape: int) -> Any:
    from simulated.ours import ours
    from simulated.world import Landscape, Mind, make_task

    task = make_task(Landscape(), seed)
    return ours(task, Mind(task, seed), evaluations, random.Random(seed), **shape)


def test_the_same_seed_gives_the_same_search() -> None:
    assert ours(1) == ours(1)
    assert ours(1) != ours(2)


def test_more_in_flight_takes_less_simulated_time_and_never_measures_two_at_once() -> None:
    alone, many = ours(3), ours(3, parallel=8, max_active=2, width=4)
    assert many.hours[-1] < alone.hours[-1] / 3
    for found in (alone, many):
        gaps = [b - a for a, b in zip(found.hours, found.hours[1:], strict=False)]
        assert min(gaps) > 10 / 3600 - 1e-9
        assert 0 < found.busy < 1


def test_no_policy_spends_more_than_its_evaluations_or_beats_the_best_program_there_is() -> None:
    from simulated.rivals import best_of_n, greedy, islands
    from simulated.world import Landscape, Mind, make_task

    for seed in range(5):
        task = make_task(Landscape(fail=0.2), seed)
        for policy in (best_of_n, greedy, islands):
            curve = policy(task, Mind(task, seed), 60, random.Random(seed))
            assert len(curve) == 60
            assert max(curve) <= task.optimum + 1e-9
    assert len(ours(4).curve) <= 60


def test_the_first_step_of_a_chain_is_slower_and_only_the_whole_chain_pays() -> None:
    from simulated.world import CHAINS, PLAIN, Landscape, make_task

    task = make_task(Landscape(steps=3), 7)
    assert len(task.ideas) == PLAIN + 3 * CHAINS
    for first in range(PLAIN, len(task.ideas), 3):
        assert task.ideas[first].effect < 0
        assert task.ideas[first].promise == pytest.approx(sum(i.effect for i in task.ideas[first + 1 : first + 3]))
        assert first + 1 not in task.open_to(())
        assert first + 1 in task.open_to([first])


@pytest.mark.heavy
def test_the_whole_benchmark_runs() -> None:
    script = [sys.executable, str(BENCHMARKS / "landscape.py"), "--seeds", "2"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=170, check=True)
    assert "| reference |" in done.stdout
    assert "| 16 | 2 | 8 |" in done.stdout
