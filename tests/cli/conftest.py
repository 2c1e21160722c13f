from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell, shell_in


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """`ksearch` as a function of this process."""
    return shell_in(tmp_path)


@pytest.fixture
def process(tmp_path: Path) -> Shell:
    """`ksearch` as a process."""
    return shell_in(tmp_path, own_process=True)
