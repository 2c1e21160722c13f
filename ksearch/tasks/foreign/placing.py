"""From a foreign file or folder to a task folder on disk, made once per content and kept beside the runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ksearch.errors import TaskError
from ksearch.tasks.foreign import flashinfer, gpumode, kernelbench
from ksearch.tasks.foreign.draft import ABOUT, BRIDGE, TEMPLATES, Draft, files_of
from ksearch.tasks.foreign.side import Side, read_side

VERSION = 1  # of what is made: a change of it makes everything anew
FORMATS = ("a FlashInfer-Bench definition or data set", "a GPU MODE problem folder", "a KernelBench file")
Reader = Callable[[Path, Side, str], Draft]


def is_foreign(name: str | Path) -> bool:
    """Whether this looks like one of the field's formats, rather than a task folder of our own."""
    path, _ = _split(name)
    if path.is_dir():
        return not (path / "task.toml").exists() and (gpumode.is_problem(path) or flashinfer.is_data_set(path))
    return path.is_file() and path.suffix in (".json", ".py")


def expand(name: str | Path) -> list[str]:
    """The tasks that a name stands for: every definition of a data set, else itself."""
    path, label = _split(name)
    if not label and path.is_dir() and not (path / "task.toml").exists() and flashinfer.is_data_set(path):
        return [str(found) for found in flashinfer.definitions(path)]
    return [str(name)]


def convert(name: str | Path, device: str = "") -> dict[str, str]:
    """The files of the task folder that this becomes, by name.

    Raises:
        TaskError: with file, line and field where the file has them.
    """
    source = _source(name)
    side = read_side(source)
    return _files(source, side, _device(side, device))


def place(name: str | Path, device: str = "") -> Path:
    """The task folder made from `name`, in the user's data folder; an unchanged source gives the same folder."""
    source = _source(name)
    side = read_side(source)
    device = _device(side, device)
    home = tasks_home()
    link = home / ".made" / _key(source, side, device)
    if link.is_file() and (made := home / link.read_text().strip() / "task.toml").is_file():
        return made.parent
    files = _files(source, side, device)
    stem = Path(source).name if source.is_dir() else source.stem
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    folder = home / f"{stem}-{device}-{digest[:12]}"
    try:
        write_new(folder, files)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_text(folder.name)
    except OSError as error:
        cure = "XDG_DATA_HOME names another place."
        raise TaskError(f"{folder}: the task made from {source} cannot be written: {error.strerror}. {cure}") from None
    return folder


def about(folder: Path) -> dict[str, Any]:
    """What is known of where a task folder was made from; {} for one that was not."""
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def tasks_home() -> Path:
    given = os.environ.get("XDG_DATA_HOME", "")
    return (Path(given) if given.startswith("/") else Path("~/.local/share").expanduser()) / "ksearch" / "tasks"


def write_new(folder: Path, files: dict[str, str]) -> None:
    """All or nothing: a folder of that name is whole. One that is there already holds the same."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        for name, text in files.items():
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)  # what runs beside a kernel is another user
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was first, with the same content
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _files(source: Path, side: Side, device: str) -> dict[str, str]:
    draft = _reader(source)(source, side, device)
    return files_of(draft, side.tables, side.files)


def _reader(source: Path) -> Reader:
    if source.is_dir():
        return gpumode.read
    return flashinfer.read if source.suffix == ".json" else kernelbench.read


def _device(side: Side, asked: str) -> str:
    if asked and asked not in ("cpu", "cuda"):
        raise TaskError(f"{asked!r} is no device. Use 'cpu' or 'cuda'.")
    return asked or side.device or ("cuda" if Path("/dev/nvidiactl").exists() else "cpu")


def _split(name: str | Path) -> tuple[Path, str]:
    """PATH, or DATASET:DEFINITION."""
    path = Path(name).expanduser()
    if not path.exists() and ":" in str(name):
        folder, _, label = str(name).rpartition(":")
        if Path(folder).expanduser().is_dir():
            return Path(folder).expanduser(), label
    return path, ""


def _source(name: str | Path) -> Path:
    """The one file or folder that the task is read from."""
    path, label = _split(name)
    if path.is_file() or (path.is_dir() and gpumode.is_problem(path)):
        return path
    return flashinfer.find_definition(path, label)


def _key(source: Path, side: Side, device: str) -> str:
    seen = hashlib.sha256(f"{VERSION} {device} {source.resolve()}".encode())
    paths = sorted(p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    for path in [source] if source.is_file() else [*paths, *gpumode.listed_files(source)]:
        seen.update(path.name.encode() + path.read_bytes())
    if source.suffix == ".json" and (workloads := flashinfer.workloads_path(source)).is_file():
        seen.update(workloads.read_bytes())
    seen.update(side.data + json.dumps(side.files, sort_keys=True).encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):  # an adapter that was changed makes tasks anew
        seen.update(file.read_bytes())
    seen.update((TEMPLATES / BRIDGE).read_bytes())
    return seen.hexdigest()[:32]
