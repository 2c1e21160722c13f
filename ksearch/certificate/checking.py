"""Is a certificate whole and consistent? What this cannot show, and who can, is said in `LIMITS`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never

from pydantic import ValidationError

from ksearch.certificate import numbers
from ksearch.certificate.form import Certificate, canonical, digest
from ksearch.certificate.making import as_dict, over
from ksearch.certificate.verdict import problems
from ksearch.errors import CertificateError
from ksearch.types import Program

LIMITS = (
    "Checked: nothing was changed since it was sealed, and its figures follow from its samples. Not proven: that the "
    "samples were ever measured. Whoever invents samples can seal them as well. `ksearch verify --certificate FILE` "
    "measures again on your machine."
)
CLOSE = 1e-9  # relative: rounding of another CPU's or library's logarithm
Body = Mapping[str, Any]


def check(data: bytes, name: str = "certificate") -> dict[str, Any]:
    """The certificate in `data`, if it holds together.

    Args:
        data: the bytes of the file.
        name: of the file, for messages.

    Raises:
        CertificateError: not canonical JSON, not the format, another hash, or figures that contradict each other.
            The message names the field.
    """
    try:
        body = _parse(data)
        _form(data)
        if (found := digest(body)) != body["sha256"]:
            raise CertificateError(f"its SHA-256 is {found}, but it says {body['sha256']}: it was changed")
        _consistent(body)
    except CertificateError as error:
        raise CertificateError(f"{name}: {error}") from error
    return body


def _parse(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data, parse_constant=_not_finite)
        same = canonical(body) + b"\n" == data
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"not a JSON file of finite numbers: {error}") from error
    if not isinstance(body, dict):
        raise CertificateError("not a certificate: a JSON object is expected")
    if not same:
        text = (
            "not in canonical form (sorted keys, no blanks, one line): it was changed or saved anew by another program"
        )
        raise CertificateError(text)
    return body


def _not_finite(text: str) -> Never:
    raise ValueError(f"{text} is not a finite number")


def _form(data: bytes) -> None:
    try:
        Certificate.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CertificateError(f"{place or 'top level'}: {first['msg']}") from error


def _consistent(body: Body) -> None:
    for complaint in _complaints(body):
        raise CertificateError(complaint)


def _complaints(body: Body) -> Iterator[str]:
    yield from _programs(body)
    for number, result in enumerate(body["results"]):
        yield from (f"results[{number}]: {text}" for text in _result(body, result))
    if list(body["problems"]) != problems(body):
        yield f"problems: {body['problems']} are noted, but the results show {problems(body)}"
    if body["passed"] != (not body["problems"]):
        yield f"passed is {body['passed']}, but problems are {body['problems']}"


def _programs(body: Body) -> Iterator[str]:
    for id, entry in body["programs"].items():
        try:
            found = Program(entry["sources"], entry["entry_point"], entry["language"]).id
        except ValueError as error:
            yield f"programs.{id[:12]}: {error}"
            continue
        if found != id:
            yield f"programs.{id[:12]}: its sources make the id {found}"
        hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in entry["sources"].items()}
        if hashes != entry["sources_sha256"]:
            yield f"programs.{id[:12]}: sources_sha256 does not match the sources"
    named = {body["baseline"], *body["against"], *(r["program"] for r in body["results"])}
    for id in sorted(named ^ set(body["programs"])):
        yield f"programs: {id[:12]} is {'not there' if id in named else 'not mentioned anywhere else'}"


def _result(body: Body, result: Body) -> Iterator[str]:
    rows = {w["name"]: w for w in result["workloads"]}
    if len(rows) != len(result["workloads"]):
        yield "two workloads share a name"
        return
    if result["verdict"] != "passed":
        if any(w["lanes"] for w in rows.values()) or result["speedup"] or result["latency_ms"] is not None:
            yield f"verdict is {result['verdict']}, but it has figures"
        return
    if set(rows) != set(body["task"]["timed"]):
        yield f"workloads {sorted(set(rows) ^ set(body['task']['timed']))} are timed without a row, or the reverse"
        return
    for name, row in rows.items():
        yield from (f"workload {name}: {text}" for text in _lanes(body, result, row))
    if any(True for row in rows.values() for _ in _lanes(body, result, row)):
        return
    yield from _ratios(body, result, rows)


def _lanes(body: Body, result: Body, row: Body) -> Iterator[str]:
    """Who is timed, and that each round has a turn of each."""
    lanes = row["lanes"]
    who = [(lane["role"], lane["program"]) for lane in lanes]
    others = sorted(result["against"])
    if not set(others) <= set(body["against"]):
        yield "it is held against programs that the certificate does not name"
    elif who[:2] != [("candidate", result["program"]), ("baseline", body["baseline"])]:
        yield "its first two lanes must be the candidate's and the baseline's"
    elif sorted(id for _, id in who[2:]) != others or any(role != "against" for role, _ in who[2:]):
        yield f"its other lanes must be those of {[id[:12] for id in others]}"
    elif len({len(lane["turns"]) for lane in lanes}) != 1:
        yield "its lanes have different numbers of turns: they are not pairs"
    elif len({len(turn) for lane in lanes for turn in lane["turns"]}) != 1:
        yield "its turns have different numbers of calls"


def _ratios(body: Body, result: Body, rows: Mapping[str, Body]) -> Iterator[str]:
    """Medians, ratios and intervals once more from the samples."""
    mean, seed = body["task"]["mean"], body["method"]["bootstrap_seed"]
    if not 0 <= seed < 2**32:
        yield f"method.bootstrap_seed: {seed} is no seed"
        return
    for name, row in rows.items():
        yield from (f"workload {name}: {text}" for text in _medians(row))
    lanes = {name: _in_order(row["lanes"]) for name, row in rows.items()}
    names = ["", *sorted(result["against"])]
    for number, id in enumerate(names, 1):
        total, each = over(lanes, number, mean, seed)
        said = result["against"][id] if id else result["speedup"]
        label = f"against {id[:12]}" if id else "speedup"
        if not _same(said, as_dict(total)):
            yield f"{label} is {said}, but the samples give {as_dict(total)}"
        for name, row in rows.items():
            stated = row["against"].get(id) if id else row["speedup"]
            if not _same(stated, as_dict(each[name])):
                yield f"workload {name}: {label} is {stated}, but the samples give {as_dict(each[name])}"
    latency = numbers.mean_ms([row["median_ms"] or 0.0 for row in result["workloads"]], mean)
    if not _close(result["latency_ms"], latency):
        yield f"latency_ms is {result['latency_ms']}, but the medians give {latency}"


def _in_order(lanes: Sequence[Body]) -> list[Body]:
    return [*lanes[:2], *sorted(lanes[2:], key=lambda lane: str(lane["program"]))]


def _medians(row: Body) -> Iterator[str]:
    lanes = row["lanes"]
    own = numbers.median_ms(lanes[0]["turns"])
    wanted = {"median_ms": own, "baseline_ms": numbers.median_ms(lanes[1]["turns"])}
    for field, value in wanted.items():
        if not _close(row[field], value):
            yield f"{field} is {row[field]}, but the samples give {value}"
    others = {lane["program"]: numbers.median_ms(lane["turns"]) for lane in lanes[2:]}
    if set(others) != set(row["against_ms"]) or not all(_close(row["against_ms"][id], v) for id, v in others.items()):
        yield f"against_ms is {row['against_ms']}, but the samples give {others}"
    share = None if row["floor_ms"] is None or own <= 0 else row["floor_ms"] / own
    if (share is None) != (row["floor_share"] is None) or (share is not None and not _close(row["floor_share"], share)):
        yield f"floor_share is {row['floor_share']}, but floor and median give {share}"


def _same(said: Body | None, found: Body) -> bool:
    return said is not None and all(_close(said[part], found[part]) for part in ("value", "low", "high"))


def _close(said: float | None, found: float) -> bool:
    return said is not None and math.isclose(said, found, rel_tol=CLOSE, abs_tol=1e-12)
