"""Every cheat in the real evaluator. The twins and the proofs are run by `ksearch redteam` in `.ci/run`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ksearch.redteam.gpu.table import CHEATS as GPU_CHEATS
from ksearch.redteam.report import faults
from ksearch.redteam.spy import spy
from ksearch.redteam.suite import KEY, run_redteam
from ksearch.redteam.table import CHEATS


def children() -> list[int]:
    """Our child processes, of all threads."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return [int(pid) for pid in found]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_cheat_is_stopped_by_the_verdict_and_at_the_stage_that_the_table_names() -> None:
    before = set(children())
    rows = run_redteam(proofs=False, twins=False)
    assert faults(rows) == []
    assert len(rows) == len(CHEATS) + len(GPU_CHEATS)
    assert sum(row.caught is not None for row in rows) >= 25
    assert set(children()) <= before, "processes left behind"
    assert KEY not in os.environ


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_twin_passes_and_a_proof_succeeds() -> None:
    rows = run_redteam(["trusts-zeroed-memory"])
    assert faults(rows) == []
    assert all(row.twin is not None and row.proof is not None for row in rows)


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sandbox", ["auto", "no_namespaces"])
def test_a_spy_that_prints_all_that_it_sees_saw_no_seed_and_no_expected_value(sandbox: str) -> None:
    report = spy(sandbox)
    assert report.inputs_seen, "what the spy was given is not in its dump: the search proves nothing"
    assert report.dumps >= 1
    assert report.dump_bytes > 10_000_000
    assert report.seeds >= 4
    assert report.stage in ("time", "confirm")
    assert report.found == ()


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sandbox", ["no_namespaces"])
def test_thieves_get_nothing_where_name_spaces_are_forbidden(sandbox: str) -> None:
    """But for one: other processes can be seen there by name, though their memory cannot be opened."""
    thieves = [c.name for c in CHEATS if c.steals and c.name != "other-processes"]
    assert faults(run_redteam(thieves, proofs=False, twins=False, sandbox=sandbox)) == []
