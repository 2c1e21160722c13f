"""The best program of a run, as files that anybody can look at, build and verify."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ksearch.codec import encode_evaluation
from ksearch.errors import InvalidCommand
from ksearch.programs import PROGRAM_FILE
from ksearch.run import Run
from ksearch.tasks.folder import BUNDLED
from ksearch.types import Evaluation, Program
from ksearch.views import holder_of

EVALUATION_FILE = "evaluation.json"
ORIGIN_FILE = "origin.json"  # run, node and task that it comes from


@dataclass(frozen=True, slots=True)
class Best:
    program: Program
    evaluation: Evaluation
    node_id: str
    origin: Mapping[str, str | None]

    def files(self) -> dict[str, bytes]:
        """What to write, by relative path: its sources, itself as JSON, its evaluation, where it comes from."""
        found = {path: text.encode() for path, text in self.program.sources.items()}
        made: dict[str, object] = {
            PROGRAM_FILE: json.loads(self.program.canonical),
            EVALUATION_FILE: encode_evaluation(self.evaluation),
            ORIGIN_FILE: dict(self.origin),
        }
        return found | {name: (json.dumps(body, indent=1) + "\n").encode() for name, body in made.items()}


def best_of(run: Run) -> Best | None:
    """The best program by paired evidence, or None while none has passed.

    Raises:
        InvalidCommand: a source of it is named as one of our own files.
    """
    state = run.state
    if state.best_id is None:
        return None
    program, done = run.program(state.best_id), state.evaluations[state.best_id]
    if clash := {PROGRAM_FILE, EVALUATION_FILE, ORIGIN_FILE} & set(program.sources):
        raise InvalidCommand(f"the program has a source called {clash.pop()}, as one of the files written beside it")
    node = holder_of(state, state.best_id)
    origin: dict[str, str | None] = {"run": run.id, "node": node, "program": state.best_id}
    origin |= {name: state.context.get(name) for name in ("task", "task_folder", "task_hash", "version")}
    return Best(program, done, node, origin)


def origin_task(folder: str) -> str | None:
    """The task that a folder written by `files` belongs to, as `load_task` takes it; None for any other folder."""
    try:
        body = json.loads(Path(folder, ORIGIN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    task, place = (body.get("task"), body.get("task_folder")) if isinstance(body, dict) else (None, None)
    return place or (str(BUNDLED / task) if isinstance(task, str) else None)
