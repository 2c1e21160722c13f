"""Every cheat on this GPU, its twin and its proof."""

from __future__ import annotations

import pytest

from ksearch.redteam.gpu.table import CHEATS
from ksearch.redteam.report import faults
from ksearch.redteam.suite import run_redteam


@pytest.mark.timeout(1200)
def test_every_cheat_is_stopped_every_twin_passes_and_every_proof_succeeds() -> None:
    rows = run_redteam([cheat.name for cheat in CHEATS])
    assert faults(rows) == []
    assert not [row.cheat.name for row in rows if row.left_out]
