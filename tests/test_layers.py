"""The import rules between layers, as pyproject.toml states them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINT = str(Path(sys.executable).with_name("lint-imports"))


def lint(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache", *args], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_imports_point_down_only() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_upwards_or_sideways_or_without_a_place_is_caught(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "ksearch", tmp_path / "ksearch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "ksearch" / "types.py").open("a", encoding="utf-8") as file:
        file.write("\nimport ksearch.store\n")
    with (tmp_path / "ksearch" / "store" / "rows.py").open("a", encoding="utf-8") as file:
        file.write("\nimport ksearch.tasks\n")
    (tmp_path / "ksearch" / "homeless.py").touch()
    done = lint(tmp_path)
    assert done.returncode == 1
    for found in ("ksearch.types is not allowed to import ksearch.store", "homeless"):
        assert found in done.stdout
    assert "ksearch.store is not allowed to import ksearch.tasks" in done.stdout
