"""What a certificate as a whole says: passed, or why not. The same rule when it is made and when it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def problems(body: Mapping[str, Any]) -> list[str]:
    """Each reason why the certificate does not say "passed", one line each; empty when it does."""
    return [f"{result['program'][:12]}: {text}" for result in body["results"] for text in _of(body, result)]


def _of(body: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    if result["verdict"] != "passed":
        return [f"{result['verdict']} at {result['stage']}: {result['reason']}"]
    found = []
    if not result["confirmed"]:
        found.append("it passed, but was not confirmed in fresh processes")
    timed, rows = set(body["task"]["timed"]), {w["name"] for w in result["workloads"]}
    found += [f"workload {name} was not timed" for name in sorted(timed - rows)]
    found += [f"workload {w['name']}: {w['verdict']}" for w in result["workloads"] if w["verdict"] != "passed"]
    wanted = {id for id in body["against"] if id not in (result["program"], body["baseline"])}
    for id in sorted(wanted - set(result["against"])):
        said = [flag for flag in result["flags"] if id[:12] in flag]
        found.append(said[0] if said else f"program {id[:12]} was not timed beside it")
    return found
