"""Evaluation elsewhere: a folder goes out, one append-only results file comes back.

    FOLDER/bundle.json          format, options, task spec
    FOLDER/task/...             reference.py and whatever else the task folder holds
    FOLDER/programs/ID.json     one program each; ID is the program's id
    FOLDER/requests.jsonl       one line per measurement: {"request", "program", "against"}
    FOLDER/results.jsonl        one line per result, synced before the next starts

There only the standard library and NumPy are needed. A run that was cut off goes on where it stopped: what has a
result is skipped, a torn last line is ignored.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ksearch.definition import TaskSpec
from ksearch.errors import EvaluatorError
from ksearch.evaluators.local import LocalEvaluator, Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.protocol import Lost
from ksearch.types import Evaluation, Kernel, Profile, Program, Ratio, Verdict, WorkloadResult

FORMAT = 1
RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One measurement to be made elsewhere. `request` comes back with the result."""

    request: str
    program: Program
    against: tuple[Program, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a results file."""

    request: str
    program_id: str
    evaluation: Evaluation | Lost
    record: dict[str, Any]


def write_bundle(folder: Path, spec: TaskSpec, task_folder: Path, wanted: Sequence[Wanted]) -> None:
    """Make a bundle at `folder`, which must not exist or be empty.

    Raises:
        EvaluatorError: there is something at `folder` already, or the task has no reference.py.
    """
    if folder.exists() and any(folder.iterdir()):
        raise EvaluatorError(f"{folder} is not empty: name a new folder for the bundle")
    if not (task_folder / "reference.py").is_file():
        raise EvaluatorError(f"{task_folder / 'reference.py'} is missing: without it nothing can be judged")
    (folder / "programs").mkdir(parents=True)
    shutil.copytree(task_folder, folder / "task", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    programs = {p.id: p for w in wanted for p in (w.program, *w.against)}
    for program in programs.values():
        (folder / "programs" / f"{program.id}.json").write_bytes(program.canonical)
    lines = [
        json.dumps({"request": w.request, "program": w.program.id, "against": [p.id for p in w.against]})
        for w in wanted
    ]
    (folder / "requests.jsonl").write_text("".join(f"{line}\n" for line in lines))
    about = {"format": FORMAT, "task": spec.to_dict()}
    (folder / "bundle.json").write_text(json.dumps(about, indent=1))  # last: a bundle without it is not whole


def evaluate_bundle(
    folder: Path, *, options: EvaluatorOptions | None = None, tell: Callable[[str], None] = print,
    results: Path | None = None,
) -> int:  # fmt: skip
    """Measure what has no result yet; returns how many were measured now. What was lost is tried again.

    Args:
        results: another file than the bundle's own `results.jsonl`.

    Raises:
        EvaluatorError: the bundle is damaged, or its task does not work here.
    """
    spec, requests = _read_bundle(folder)
    path = results or folder / RESULTS
    earlier = read_results(path) if path.exists() else iter(())
    done = {r.request for r in earlier if not isinstance(r.evaluation, Lost)}
    left = [r for r in requests if r["request"] not in done]
    tell(f"{len(requests)} requested, {len(requests) - len(left)} already done")
    if not left:
        return 0
    _cut_torn_line(path)
    with LocalEvaluator(spec, folder / "task", options=options or EvaluatorOptions(profile="best")) as evaluator:
        for number, request in enumerate(left, 1):
            program = _program(folder, request["program"])
            against = [_program(folder, i) for i in request["against"]]
            measured = evaluator.evaluate(program, against)
            _append(path, request, measured)
            tell(f"{number}/{len(left)} {program.id[:12]} {_words(measured.evaluation)}")
    return len(left)


def read_results(path: Path) -> Iterator[Result]:
    """The results in a file, also in a partial one: a torn last line is left out.

    Raises:
        EvaluatorError: a line before the last is damaged, with its number.
    """
    data = path.read_bytes()
    lines = data.split(b"\n")
    whole, torn = lines[:-1], lines[-1]
    del torn  # without its newline a line was not written to the end
    for number, line in enumerate(whole, 1):
        try:
            yield _result(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EvaluatorError(f"{path}:{number}: not a result: {error}") from error


def _result(data: dict[str, Any]) -> Result:
    found: Evaluation | Lost = Lost(data["lost"]) if "lost" in data else evaluation_from(data["evaluation"])
    return Result(data["request"], data["program"], found, data["record"])


def evaluation_from(data: dict[str, Any]) -> Evaluation:
    """Inverse of `dataclasses.asdict` for an evaluation, after a trip through JSON."""
    given = {
        **data, "verdict": Verdict(data["verdict"]), "speedup": _ratio(data["speedup"]),
        "against": {k: Ratio(**v) for k, v in data["against"].items()}, "flags": tuple(data["flags"]),
        "workloads": tuple(
            WorkloadResult(**{
                **w, "verdict": Verdict(w["verdict"]), "speedup": _ratio(w["speedup"]),
                "against": {k: Ratio(**v) for k, v in w["against"].items()},
            })
            for w in data["workloads"]
        ),
        "profiles": tuple(
            Profile(**{**p, "kernels": tuple(Kernel(**k) for k in p["kernels"])}) for p in data.get("profiles", ())
        ),
    }  # fmt: skip
    return Evaluation(**given)


def _ratio(data: dict[str, float] | None) -> Ratio | None:
    return Ratio(**data) if data else None


def _read_bundle(folder: Path) -> tuple[TaskSpec, list[dict[str, Any]]]:
    try:
        about = json.loads((folder / "bundle.json").read_text())
        if about["format"] != FORMAT:
            raise EvaluatorError(f"{folder}: bundle format {about['format']}, this version reads {FORMAT}")
        spec = TaskSpec.from_dict(about["task"])
        requests = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
        for request in requests:
            _ = request["request"], request["program"], request["against"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluatorError(f"{folder} is no bundle, or is damaged: {error}") from error
    return spec, requests


def _program(folder: Path, program_id: str) -> Program:
    path = folder / "programs" / f"{program_id}.json"
    try:
        program = Program(**json.loads(path.read_bytes().decode("utf-8", "surrogatepass")))
    except (OSError, ValueError, TypeError) as error:
        raise EvaluatorError(f"{path}: {error}") from error
    if program.id != program_id:
        raise EvaluatorError(f"{path}: its content has the id {program.id}: the file was changed")
    return program


def _cut_torn_line(path: Path) -> None:
    """A line that was cut off would join with the next one."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)


def _append(path: Path, request: dict[str, Any], measured: Measured) -> None:
    line: dict[str, Any] = {"request": request["request"], "program": request["program"]}
    if isinstance(measured.evaluation, Lost):
        line["lost"] = measured.evaluation.reason
    else:
        line["evaluation"] = asdict(measured.evaluation)
    line["record"] = measured.record
    with path.open("ab") as file:
        file.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _words(found: Evaluation | Lost) -> str:
    if isinstance(found, Lost):
        return f"lost: {found.reason}"
    if found.speedup is None:
        return f"{found.verdict}: {found.reason}"
    return (
        f"{found.verdict}: {found.speedup.value:.3f}x the baseline ({found.speedup.low:.3f}..{found.speedup.high:.3f})"
    )
