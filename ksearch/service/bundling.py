"""Evaluation elsewhere, for a run: what waits to be measured goes out as a folder, a results file comes back.

The folder brings the evaluator's own source files, so that Python, NumPy and a compiler are enough where it is run.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import ksearch
from ksearch.errors import BadInput, EvaluatorError, UnknownBlob
from ksearch.evaluators.bundle import Result, Wanted, read_results, write_bundle
from ksearch.protocol import Kind, Lost, Request
from ksearch.run import Run
from ksearch.service.answering import outside_holder
from ksearch.service.beginning import setting
from ksearch.state import was_asked
from ksearch.store import blob_name, canonical
from ksearch.syntax import parse
from ksearch.tasks import Task
from ksearch.types import Verdict

HOLDER = "bundle"
PACKAGE = Path(ksearch.__file__).parent
SOURCE = "source"  # folder of the bundle with the evaluator's own files
EVALUATE_PY = '''\
"""Measures what this folder asks for, into results.jsonl beside this file: python3 evaluate.py [-o RESULTS]

Needs Python 3.11 or newer on Linux, NumPy, and g++ where programs are in C++. Cut off, it goes on where it stopped.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("This needs Python 3.11 or newer: name another one, such as python3.12 evaluate.py")
    try:
        import numpy  # noqa: F401
    except ImportError:
        sys.exit(f"NumPy is not installed for {sys.executable}: python3 -m pip install numpy")
    sys.path.insert(0, str(HERE / "source"))
    from ksearch.evaluators.remote import main

    sys.exit(main([str(HERE), *sys.argv[1:]]))
'''


# --- out -------------------------------------------------------------------------------------------------------------


def make_bundle(folder: Path, task: Task, wanted: Sequence[Wanted]) -> None:
    """Write a bundle that runs on its own.

    Raises:
        BadInput: the folder is not empty or cannot be written.
    """
    draft = folder.with_name(f".{folder.name}.draft")
    try:
        check_place(folder)
        shutil.rmtree(draft, ignore_errors=True)
        write_bundle(draft, task.spec, task.folder, wanted)
        for file in sources():
            target = draft / SOURCE / file.relative_to(PACKAGE.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        (draft / "evaluate.py").write_text(EVALUATE_PY, encoding="utf-8")
        draft.replace(folder)  # whole at once: a bundle half written is never taken for one
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}. Name another folder with -o") from error
    except EvaluatorError as error:
        raise BadInput(str(error)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_place(folder: Path) -> None:
    """Make `folder`, so that nothing is leased for a bundle that has no place.

    Raises:
        BadInput: it holds something already.
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty: name a new folder for the bundle with -o")


def sources() -> list[Path]:
    """The files of this package that evaluation needs: the evaluators, and what they import, and so on."""
    found = {PACKAGE / "__init__.py", *(PACKAGE / "evaluators").rglob("*.cpp"), *(PACKAGE / "evaluators").rglob("*.cu")}
    todo = [p for p in (PACKAGE / "evaluators").rglob("*.py") if "__pycache__" not in p.parts]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += [file for name in _imported(path) for file in _files(name)]
    return sorted(found)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(name: str) -> Iterator[Path]:
    """The files of a module of ours, and of the packages around it."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return
    for end in range(1, len(parts) + 1):
        place = PACKAGE.joinpath(*parts[1:end])
        yield from (p for p in (place / "__init__.py", place.with_suffix(".py")) if p.is_file())


def bundle_run(run: Run, folder: Path, lease_s: float, *, again: bool = False) -> list[Request]:
    """Take all that waits to be measured in a run, as holder "bundle", into a bundle. Empty: nothing waits.

    Args:
        again: what an earlier bundle had taken, too: its folder is lost, say.

    Raises:
        BadInput: the run has no task, or the folder cannot be used. Nothing stays taken.
    """
    task = setting(run.state).task
    if task is None:
        raise BadInput(f"run {run.id} has no task: what is measured elsewhere needs one to be judged by")
    try:
        check_place(folder)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}. Name another folder with -o") from error
    taken = _taken(run, lease_s)
    requests = [*(_taken_before(run, taken) if again else ()), *taken]
    if not requests:
        folder.rmdir()
        return []
    try:
        make_bundle(folder, task, [_wanted(run, request) for request in requests])
    except (BadInput, UnknownBlob):
        for request in taken:
            run.tell(request.id, Lost("the bundle could not be written"))
        raise
    return requests


def _taken(run: Run, lease_s: float) -> list[Request]:
    requests: list[Request] = []
    while isinstance(got := run.take(outside_holder(HOLDER), frozenset({Kind.EVALUATE}), lease_s), Request):
        requests.append(got)
    return requests


def _taken_before(run: Run, now: Sequence[Request]) -> list[Request]:
    new = {request.id for request in now}
    return [
        p.request
        for id, p in run.state.pending.items()
        if p.request.kind is Kind.EVALUATE and p.lease and p.lease.holder.name == HOLDER and id not in new
    ]


def _wanted(run: Run, request: Request) -> Wanted:
    program = run.program(request.program_id or "")
    return Wanted(request.id, program, tuple(run.program(id) for id in request.against))


# --- back ------------------------------------------------------------------------------------------------------------


class Fate(StrEnum):
    """What became of one result."""

    TAKEN = "taken"
    DUPLICATE = "duplicate"  # answered before: nothing was recorded
    LOST = "lost"  # the evaluator failed there: it will be asked again
    IGNORED = "ignored"  # nobody wants to know any more
    UNKNOWN = "unknown"  # this run knows no such program
    REFUSED = "refused"  # measured under other conditions than this run's


@dataclass(frozen=True, slots=True)
class Received:
    program_id: str
    fate: Fate
    detail: str = ""
    verdict: Verdict | None = None


def tell_results(run: Run, path: Path) -> list[Received]:
    """Answer a run's requests from a results file, whole or partial. May be repeated without harm.

    Raises:
        BadInput: the file cannot be read, or a line in it is no result. Nothing is recorded.
    """
    try:
        results = list(read_results(path))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except EvaluatorError as error:
        raise BadInput(f"{error}. Nothing was recorded: remove the line, or get the file again") from error
    final = {r.program_id for r in results if not isinstance(r.evaluation, Lost)}
    wanted = [r for r in results if not (isinstance(r.evaluation, Lost) and r.program_id in final)]
    return [_receive(run, result) for result in wanted]


def _receive(run: Run, result: Result) -> Received:
    id, found = result.program_id, result.evaluation
    request_id = _request(run, result)
    if request_id is None:
        if id in run.state.evaluations:
            return Received(id, Fate.DUPLICATE)
        return Received(id, Fate.UNKNOWN, f"run {run.id} knows no such program")
    if isinstance(found, Lost):
        told = run.tell(request_id, found)
        return Received(id, Fate.LOST if told else Fate.DUPLICATE, found.reason)
    if objection := _objection(run, result):
        return Received(id, Fate.REFUSED, objection)
    record = canonical(result.record).encode()
    events = run.tell(request_id, replace(found, record=blob_name(record)), None, [record])
    if not events:
        return Received(id, Fate.DUPLICATE)
    ignored = request_id in run.state.withdrawn
    return Received(id, Fate.IGNORED if ignored else Fate.TAKEN, found.reason, found.verdict)


def _request(run: Run, result: Result) -> str | None:
    """The open request that a result answers, by its program; else the one it was made for, if it was ours."""
    for id, pending in run.refresh().pending.items():
        if pending.request.kind is Kind.EVALUATE and pending.request.program_id == result.program_id:
            return id
    ours = was_asked(run.state, result.request) and result.request in run.state.withdrawn
    return result.request if ours else None


def _objection(run: Run, result: Result) -> str:
    evaluation, record = result.evaluation, result.record
    if isinstance(evaluation, Lost) or evaluation.program_id != result.program_id:
        return "the line names another program than its evaluation"
    task_hash = run.state.context.get("task_hash")
    if task_hash and record.get("task_hash") != task_hash:
        return "it was measured on the task in another state: bundle it again"
    if record.get("disabled_defences"):
        return f"it was measured with defences switched off: {record['disabled_defences']}"
    return ""
