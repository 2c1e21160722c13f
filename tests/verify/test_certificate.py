"""What a certificate holds, and what is refused."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch.certificate import check, digest, seal
from ksearch.certificate.making import over
from ksearch.errors import CertificateError
from ksearch.tasks import Task
from ksearch.types import Program
from ksearch.verify import Verified

Body = dict[str, Any]
Resealed = Callable[[Callable[[Body], object]], bytes]


def test_it_holds_what_is_needed_to_judge_and_to_repeat_the_measurement(
    verified: Verified, task: Task, slow: Program
) -> None:
    body = check(verified.data)
    assert body["passed"]
    assert body["task"]["hash"] == task.hash
    for id, entry in body["programs"].items():
        assert Program(entry["sources"], entry["entry_point"], entry["language"]).id == id
    assert {slow.id, task.baseline.id} <= set(body["programs"])
    (result,) = body["results"]
    assert result["confirmed"]
    assert result["unseen_shapes"]
    assert result["sandbox_level"] in ("namespaces", "landlock", "limits")
    assert result["build_command"][0] == "g++"
    assert all(len(seed) == 32 for seeds in result["seeds"]["confirmation"].values() for seed in seeds)
    assert {w["name"] for w in result["workloads"]} == {"small", "large", "ragged"}
    for row in result["workloads"]:
        assert [lane["role"] for lane in row["lanes"]] == ["candidate", "baseline", "against"]
        assert row["median_ms"] == statistics.median(ms for turn in row["lanes"][0]["turns"] for ms in turn)
        assert row["speedup"]["low"] < row["speedup"]["value"] < 1
        assert row["floor_share"] > 0
        assert row["max_rel_error"] >= 0
    assert body["machine"]["before"]["load_1"] is not None
    assert body["toolchain"]["compiler"].startswith("g++")


def test_every_single_byte_matters(golden: Verified) -> None:
    data = golden.data

    @given(at=st.integers(0, len(data) - 1), flip=st.integers(1, 255))
    @settings(max_examples=300, deadline=None)
    def flipped(at: int, flip: int) -> None:
        changed = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
        with pytest.raises(CertificateError):
            check(changed)

    flipped()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d[:-1],
        lambda d: d + b"\n",
        lambda d: d + b" ",
        lambda d: b" " + d,
        lambda d: d[: len(d) // 2],
        lambda d: b"",
        lambda d: b"[" * 100_000,
        lambda d: b"null\n",
        lambda d: b"\xff\xfe" + d,
        lambda d: d.replace(b'"passed":true', b'"passed":true,"passed":true'),
        lambda d: json.dumps(json.loads(d), indent=1).encode(),
        lambda d: d.replace(b'"floor_ms":0.', b'"floor_ms":NaN,"x":0.', 1),
    ],
)
def test_what_is_not_the_sealed_bytes_is_refused(golden: Verified, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CertificateError, match=r"the\.json"):
        check(change(golden.data), "the.json")


def first(body: Body) -> Body:
    return body["results"][0]


def row(body: Body) -> Body:
    return first(body)["workloads"][0]


def other_sources(body: Body) -> None:
    entry = next(iter(body["programs"].values()))
    entry["sources"] = {name: text + "// faster\n" for name, text in entry["sources"].items()}


def swap_lanes(body: Body) -> None:
    lanes = row(body)["lanes"]
    lanes[0]["turns"], lanes[1]["turns"] = lanes[1]["turns"], lanes[0]["turns"]


# Name -> what a forger changes before sealing again, and the word that the refusal has to hold.
FORGERIES: dict[str, tuple[Callable[[Body], object], str]] = {
    "median": (lambda b: row(b).update(median_ms=row(b)["median_ms"] / 2), "median_ms"),
    "baseline time": (lambda b: row(b).update(baseline_ms=row(b)["baseline_ms"] * 2), "baseline_ms"),
    "ratio": (lambda b: row(b)["speedup"].update(value=row(b)["speedup"]["value"] * 1.001), "speedup"),
    "interval": (lambda b: row(b)["speedup"].update(low=row(b)["speedup"]["value"] * 0.9999), "speedup"),
    "overall": (lambda b: first(b)["speedup"].update(value=2.0, high=2.1), "speedup"),
    "mean time": (lambda b: first(b).update(latency_ms=first(b)["latency_ms"] * 0.9), "latency_ms"),
    "floor share": (lambda b: row(b).update(floor_share=0.99), "floor_share"),
    "samples": (swap_lanes, "median_ms"),
    "a sample gone": (lambda b: row(b)["lanes"][0]["turns"].pop(), "turns"),
    "a lane gone": (lambda b: row(b)["lanes"].pop(), "lanes"),
    "a workload gone": (lambda b: first(b)["workloads"].pop(0), "workloads"),
    "sources": (other_sources, "sources"),
    "a program gone": (lambda b: b["programs"].pop(first(b)["program"]), "not there"),
    "verdict": (lambda b: first(b).update(verdict="wrong_values"), "verdict"),
    "not passed": (lambda b: b.update(passed=False), "passed"),
    "confirmed": (lambda b: first(b).update(confirmed=False), "problems"),
    "hidden problem": (lambda b: b.update(problems=["none"], passed=False), "problems"),
    "another seed": (lambda b: b["method"].update(bootstrap_seed=1), "samples give"),
    "no such seed": (lambda b: b["method"].update(bootstrap_seed=-1), "bootstrap_seed"),
    "another format": (lambda b: b.update(format="ksearch-certificate/2"), "format"),
    "a field too many": (lambda b: b.update(note="trust me"), "note"),
    "a field gone": (lambda b: b.pop("machine"), "machine"),
    "negative time": (lambda b: row(b)["lanes"][0]["turns"][0].__setitem__(0, -1.0), "turns"),
    "no turns": (lambda b: [lane.update(turns=[]) for lane in row(b)["lanes"]], "turns"),
    "text as number": (lambda b: row(b).update(median_ms="0.1"), "median_ms"),
    "zero ratio": (lambda b: row(b)["speedup"].update(low=0.0), "low"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_figures_that_contradict_each_other_are_refused_even_when_sealed_again(resealed: Resealed, name: str) -> None:
    edit, word = FORGERIES[name]
    with pytest.raises(CertificateError, match=word):
        check(resealed(edit))


def test_consistent_forgery_is_not_caught_here_and_the_documentation_says_so(resealed: Resealed) -> None:
    """Whoever invents all samples can compute all figures: only measuring again shows it."""
    check(resealed(invent))


def invent(body: Body, factor: float = 100.0) -> None:
    """The candidate `factor` times as fast, with every figure to match."""
    for result in body["results"]:
        for w in result["workloads"]:
            for turn in w["lanes"][0]["turns"]:
                turn[:] = [ms / factor for ms in turn]
            w["median_ms"] = statistics.median(ms for turn in w["lanes"][0]["turns"] for ms in turn)
            w["floor_share"] = w["floor_ms"] / w["median_ms"]
        lanes = {w["name"]: w["lanes"] for w in result["workloads"]}
        total, each = over(lanes, 1, "geometric")
        beside, beside_each = over(lanes, 2, "geometric")
        result["speedup"] = {"value": total.value, "low": total.low, "high": total.high}
        for id in result["against"]:
            result["against"][id] = {"value": beside.value, "low": beside.low, "high": beside.high}
        result["latency_ms"] /= factor
        for w in result["workloads"]:
            w["speedup"] = vars_of(each[w["name"]])
            w["against"] = {id: vars_of(beside_each[w["name"]]) for id in w["against"]}


def vars_of(ratio: Any) -> Body:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}


def test_a_certificate_of_the_past_is_still_accepted(golden: Verified) -> None:
    assert check(golden.data)["passed"]


def test_the_hash_is_over_everything_but_itself(golden: Verified) -> None:
    body = json.loads(golden.data)
    assert digest(body) == body["sha256"] == digest({k: v for k, v in body.items() if k != "sha256"})
    assert seal(body) == golden.data
