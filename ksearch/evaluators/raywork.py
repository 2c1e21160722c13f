"""What runs in a worker of a Ray cluster: the local evaluator, for one program. Standard library and NumPy only.

A worker's process is used once, so that nothing of one candidate is there when the next one comes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators.local import LocalEvaluator, Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.types import Program

Files = Mapping[str, bytes]  # of a task folder, by relative path


def packed(folder: Path) -> dict[str, bytes]:
    """A task folder as it travels: without caches and hidden files."""
    paths = (p for p in folder.rglob("*") if p.is_file())
    names = {p.relative_to(folder).as_posix(): p for p in paths}
    hidden = ("__pycache__", ".")
    return {n: p.read_bytes() for n, p in names.items() if not any(part.startswith(hidden) for part in n.split("/"))}


def unpacked(files: Files, place: Path | None = None) -> Path:
    """The folder on this machine, written where it is not whole.

    Raises:
        EvaluatorError: a file cannot be written, or is not what was sent.
    """
    digest = hashlib.sha256("\0".join(f"{n} {hashlib.sha256(files[n]).hexdigest()}" for n in sorted(files)).encode())
    folder = (place or Path(tempfile.gettempdir())) / f"ksearch-task-{os.getuid()}-{digest.hexdigest()[:24]}"
    said = ""
    if _missing(folder, files):
        try:
            _write(folder, files)
        except OSError as error:
            said = f" ({error.strerror})"
    if missing := _missing(folder, files):
        raise EvaluatorError(
            f"{folder / missing} of the task is missing on {os.uname().nodename}, or is not what was sent{said}: see "
            f"that {folder.parent} has room and is writable there, and remove {folder}"
        )
    return folder


def _write(folder: Path, files: Files) -> None:
    """All of it beside its place first: another worker of this machine may be reading it, or writing it too."""
    draft = Path(tempfile.mkdtemp(prefix="ksearch-task-", dir=folder.parent))
    try:
        draft.chmod(0o755)
        for name, data in files.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(data)
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another worker was quicker
            draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _missing(folder: Path, files: Files) -> str | None:
    for name, data in files.items():
        try:
            if (folder / name).read_bytes() != data:
                return name
        except OSError:
            return name
    return None


def measure(
    files: Files, spec: TaskSpec, options: EvaluatorOptions, program: Program, against: Sequence[Program]
) -> Measured | str:
    """Measure here. A text: why the task cannot be measured on this machine at all."""
    try:
        with LocalEvaluator(spec, unpacked(files), options=options) as local:
            found = local.evaluate(program, against)
    except EvaluatorError as error:
        return f"{os.uname().nodename}: {error}"
    return replace(found, record={**found.record, "host": os.uname().nodename})
