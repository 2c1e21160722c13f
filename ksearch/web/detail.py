"""One program in full: its sources, who asked for it and with what, and what was measured."""

from __future__ import annotations

import json
from typing import Any

from ksearch.codec import decode_program
from ksearch.errors import CodecError, Corrupt, UnknownBlob
from ksearch.state import State
from ksearch.store import Store
from ksearch.web import rows
from ksearch.web.reader import RunReader
from ksearch.web.stages import in_order

MAX_SOURCE = 2 * 1024 * 1024  # characters of all sources of a program that are sent
MAX_RECORD = 16 * 1024 * 1024  # bytes of a record that are read
MAX_SAMPLES = 4000  # samples of one program on one workload that are sent


def program_detail(reader: RunReader, program_id: str) -> dict[str, Any] | None:
    """None: this run has no such program."""
    found = reader.of_program(program_id)
    if found is None:
        return None
    state, attempt = found
    done = state.evaluations.get(program_id)
    body: dict[str, Any] = {"id": program_id, "attempt": attempt, **sources(reader.store, program_id)}
    body["evaluation"] = rows.evaluation_detail(done) if done else None
    body["compare"] = _others(state, attempt, program_id)
    body["measured"] = record(reader.store, done.record) if done and done.record else None
    if baseline := (body["measured"] or {}).get("baseline"):
        body["compare"]["baseline"] = baseline
    return body


def sources(store: Store, program_id: str) -> dict[str, Any]:
    """The files of a program, or why they cannot be shown."""
    try:
        program = decode_program(store.get_blob(program_id))
    except (UnknownBlob, Corrupt, CodecError) as error:
        return {"sources": {}, "missing": str(error)}
    left = MAX_SOURCE
    files = {}
    for path, text in program.sources.items():
        files[path] = text[:left]
        left = max(0, left - len(text))
    return {"sources": files, "entry_point": program.entry_point, "language": program.language, "cut": left == 0}


def _others(state: State, attempt: dict[str, Any], program_id: str) -> dict[str, str]:
    others = {"parent": attempt.get("base"), "best": state.best_id}
    return {name: id for name, id in others.items() if id and id != program_id}


def record(store: Store, sha: str) -> dict[str, Any] | None:
    """What a page shows of an evaluation's record: stages, build, seeds, samples. None where there is none."""
    try:
        data = store.get_blob(sha)
    except UnknownBlob:
        return None
    except Corrupt as error:
        return {"damaged": str(error)}
    if len(data) > MAX_RECORD:
        return {"damaged": f"the record is longer than {MAX_RECORD} bytes and is not shown"}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        return {"damaged": f"the record is not JSON: {error}"}
    return _picked(body) if isinstance(body, dict) else None


def _picked(body: dict[str, Any]) -> dict[str, Any]:
    names = (
        "made_at", "task", "baseline", "against", "stage_seconds", "machine", "load", "versions", "build", "sandbox",
        "ending", "seeds", "errors", "disabled_defences", "counters", "profile",
    )  # fmt: skip
    kept = {name: body[name] for name in names if body.get(name) is not None}
    if isinstance(kept.get("baseline"), dict):
        kept["baseline"] = kept["baseline"].get("program")
    if not isinstance(kept.get("baseline"), str):
        kept.pop("baseline", None)
    if isinstance(kept.get("stage_seconds"), dict):
        kept["stage_seconds"] = in_order(kept["stage_seconds"])
    kept["timing"] = _samples(body.get("timing"))
    return kept


def _samples(timing: Any) -> dict[str, dict[str, list[float]]]:
    """{workload: {program id: times in ms}} of every timing in the record; what has another shape is left out."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in timing if isinstance(timing, list) else []:
        workloads = one.get("workloads") if isinstance(one, dict) else None
        for name, track in workloads.items() if isinstance(workloads, dict) else ():
            for sample in track.get("samples_ns", []) if isinstance(track, dict) else []:
                times = [ns / 1e6 for ns in _flat(sample.get("turns", []))]
                found.setdefault(name, {}).setdefault(str(sample.get("program")), []).extend(times[:MAX_SAMPLES])
    return found


def _flat(turns: Any) -> list[float]:
    flat = []
    for turn in turns if isinstance(turns, list) else []:
        flat += turn if isinstance(turn, list) else [turn]
    return [ns for ns in flat if isinstance(ns, int | float) and not isinstance(ns, bool)]
