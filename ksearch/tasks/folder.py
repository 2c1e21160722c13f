"""A task folder: `task.toml`, `reference.py`, and the programs that the search starts from or is held against."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ksearch.definition import DEVICES, TaskSpec
from ksearch.errors import TaskError
from ksearch.tasks import foreign
from ksearch.tasks import format as fmt
from ksearch.tasks.fields import Section, Source, listed, suggest
from ksearch.tasks.sources import hash_folder, read_file, read_program, read_reference
from ksearch.types import Program

BUNDLED = Path(__file__).parent / "bundled"
HARDWARE = "hardware"  # among the guides: the task's own word on the machine, in place of the public facts


@dataclass(frozen=True, slots=True)
class Task:
    """A task as its folder gives it. `spec` is all that the evaluator needs beside `reference_source`."""

    spec: TaskSpec
    folder: Path
    reference_source: str  # text of reference.py
    guides: Mapping[str, Path] = field(default_factory=dict)  # language -> the task's own word on how to write programs

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def description(self) -> str:
        """Prose for people and models: what has to be computed."""
        return self.spec.description

    @property
    def baseline(self) -> Program:
        return self.spec.baseline

    @property
    def strong(self) -> Mapping[str, Program]:
        """Programs that are hard to beat, by name."""
        return self.spec.strong

    @property
    def hash(self) -> str:
        """SHA-256 over the folder's content: results are comparable only where it is the same."""
        return self.spec.hash

    @property
    def reference_path(self) -> Path:
        return self.folder / "reference.py"


def bundled_tasks() -> tuple[str, ...]:
    """Names of the tasks that come with K-Search."""
    return tuple(sorted(p.parent.name for p in BUNDLED.glob("*/task.toml")))


def find_task(name: str | Path) -> Path:
    """The folder of a task given by path (of the folder or its task.toml) or by the name of a bundled one.

    A task in one of the field's formats (`ksearch.tasks.foreign`) is made into a folder first.

    Raises:
        TaskError: there is no such folder and no bundled task of that name.
    """
    path = Path(name).expanduser()
    if path.is_file() and path.name == "task.toml":
        return path.parent
    if str(name) not in bundled_tasks() and foreign.is_foreign(name):
        return foreign.place(name)
    if path.is_dir():
        return path
    if str(name) in bundled_tasks():
        return BUNDLED / str(name)
    known = bundled_tasks()
    raise TaskError(
        f"{name}: no such task folder, and no bundled task of that name. Bundled: {listed(known)}."
        f"{suggest(str(name), known)} `ksearch init {name}` writes a new folder."
    )


def tasks_of(name: str) -> list[str]:
    """The tasks that a name stands for: each definition of a FlashInfer-Bench data set, else itself."""
    return foreign.expand(name) if name not in bundled_tasks() and foreign.is_foreign(name) else [name]


def why_not_here(task: Task) -> str:
    """Why a task that was read from another format cannot run on this machine; "" if nothing is known against it."""
    about = foreign.about(task.folder)
    if large := next((note for note in about.get("notes", ()) if note.startswith(foreign.STOPS)), ""):
        return large
    if about and importlib.util.find_spec("torch") is None:
        return "its reference is torch code, and torch is not installed: pip install torch"
    return ""


def load_task(path_or_name: str | Path) -> Task:
    """Read and check a task folder; nothing of it is run.

    Raises:
        TaskError: the first mistake found: file, line, key, value and how to put it right.
    """
    folder = find_task(path_or_name)
    root = Source(folder / "task.toml").parse()
    fmt.check_version(root)
    reference = read_reference(folder)
    languages = _languages(root)
    spec = _spec(root, folder, languages)
    guides = _guides(root, folder, languages)
    root.finish()
    return Task(spec, folder, reference, guides)


def _spec(root: Section, folder: Path, languages: tuple[str, ...]) -> TaskSpec:
    device = root.choice("device", DEVICES, "cpu")
    name, title, description = fmt.task_name(root), root.text("title", ""), root.text("description")
    axes = fmt.read_axes(root)
    constants = fmt.read_constants(root, axes)
    known = {**axes, **constants}
    inputs, outputs = (fmt.read_tensors(root, key, known) for key in ("inputs", "outputs"))
    fmt.check_distinct(root, inputs, outputs, axes)
    fmt.check_device(root, device, languages, inputs, outputs)
    floor = fmt.read_floor(root, known)
    workloads = fmt.read_workloads(root, axes)
    constraints = fmt.read_constraints(root, known)
    fmt.check_sizes(root, (*inputs, *outputs), floor, workloads, constants, constraints)
    symbol = _symbol(root)
    return TaskSpec(
        name=name,
        title=title or name,
        description=description.strip(),
        languages=languages,
        entry_point=symbol,
        axes=tuple(axes),
        domain=axes,
        inputs=inputs,
        outputs=outputs,
        workloads=workloads,
        tolerance=fmt.read_tolerances(root, outputs),
        precision=root.choice("precision", fmt.PRECISIONS, "tolerance"),
        floor=floor,
        mean=fmt.read_mean(root),
        baseline=read_program(root.table("baseline"), folder, symbol, languages),
        strong=_strong(root, folder, symbol),
        constants=constants,
        constraints=constraints,
        forbid=root.texts("forbid", ()),
        threads=root.integer("threads", 1),
        limits=fmt.read_limits(root),
        hash=hash_folder(folder),
        device=device,
    )


def _strong(root: Section, folder: Path, symbol: str) -> dict[str, Program]:
    entries = root.table("strong", optional=True).children()
    return {label: read_program(entry, folder, symbol, fmt.LANGUAGES) for label, entry in entries}


def _languages(root: Section) -> tuple[str, ...]:
    languages = root.texts("languages")
    for language in languages:
        if language not in fmt.LANGUAGES:
            fix = f"Known: {listed(fmt.LANGUAGES)}.{suggest(language, fmt.LANGUAGES)}"
            root.fail("languages", f"unknown language {language!r}", fix)
    if not languages:
        root.fail("languages", "no language", f"Name at least one of {listed(fmt.LANGUAGES)}.")
    return languages


def _symbol(root: Section) -> str:
    symbol = root.text("entry_point", "run")
    if not symbol.isidentifier():
        root.fail("entry_point", f"{symbol!r} is no name of a function", "Use a plain identifier, such as 'run'.")
    return symbol


def _guides(root: Section, folder: Path, languages: tuple[str, ...]) -> dict[str, Path]:
    """The task's own guides; for other languages `ksearch.prompts` has general ones."""
    guides: dict[str, Path] = {}
    table = root.table("guides", optional=True)
    for language in table.data:
        if language not in (*languages, HARDWARE):
            fix = f"Use {listed((*languages, HARDWARE))}."
            table.fail(language, "is not among the task's languages", fix)
        name = table.text(language)
        read_file(table, folder, name, language)
        guides[language] = folder / name
    return guides
