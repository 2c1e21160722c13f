"""Every Python example of the documentation runs, page by page, from top to bottom."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    str(path.relative_to(ROOT)): "".join(BLOCK.findall(path.read_text(encoding="utf-8")))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


@pytest.mark.parametrize("page", [page for page, code in PAGES.items() if code])
def test_python_examples_run(page: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PAGES[page]], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
