"""The pages whose shell blocks run, from top to bottom, and print what the page says they print.

After a change of what is printed: KSEARCH_UPDATE_DOCS=1 writes the new output into the page; read the difference.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    "docs/tutorial-by-hand.md",
    "docs/campaigns.md",
    pytest.param("docs/tutorial-own-kernel.md", marks=[pytest.mark.heavy, pytest.mark.timeout(900)]),  # it measures
]
BLOCK = re.compile(r"^(`{3,})sh\n(.*?)^\1\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
MARK = "--- end of block ---"


def outputs(blocks: list[str], folder: Path) -> list[str]:
    script = "set -eu\n" + "".join(f"{block}\necho; echo '{MARK}'\n" for block in blocks)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KSEARCH_", "XDG_"))}
    env = {**kept, "COLUMNS": "100", "HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=840
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [text.strip("\n") for text in done.stdout.split(f"\n{MARK}\n")[:-1]]


@pytest.mark.parametrize("page", PAGES)
def test_shell_examples_print_what_the_page_says(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    assert found
    shown = outputs([match[2] for match in found], tmp_path)
    if os.environ.get("KSEARCH_UPDATE_DOCS"):
        for match, output in reversed(list(zip(found, shown, strict=True))):
            if match[3] is not None:
                text = f"{text[: match.start(3)]}{output}\n{text[match.end(3) :]}"
        (ROOT / page).write_text(text, encoding="utf-8")
        return
    for match, output in zip(found, shown, strict=True):
        if match[3] is not None:
            assert _timeless(output) == _timeless(match[3].strip("\n"))


def _timeless(text: str) -> str:
    return re.sub(r"\d+\.\d minutes", "a few minutes", text)
