"""The parts that need no process: comparison, statistics, messages, symbols, layouts."""

from __future__ import annotations

import itertools
import json
import math
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch.definition import TaskSpec, Tolerance
from ksearch.evaluators import ceilings, elf, forbidden, stats, wire
from ksearch.evaluators.buffers import BufferSet, Poison, lay_out
from ksearch.evaluators.compare import clearly_equal, compare
from ksearch.types import Program

Spread = Callable[[Sequence[float], np.random.Generator], np.ndarray]
LOOSE = Tolerance(1e-3, 1e-4, 1e-4)


def test_the_first_wrong_element_is_named_with_what_was_expected() -> None:
    expected = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    got = expected.astype(np.float32)
    got[1, 0, 2] = 7
    got[1, 2, 3] = 9
    report = compare(got, expected, LOOSE)
    assert report.verdict == "wrong_values"
    assert report.reason("y") == "y[1, 0, 2] is wrong: got 7, expected 14; 2 of 24 elements wrong"


@pytest.mark.parametrize(("got", "expected", "verdict"), [
    (np.nan, 1.0, "non_finite"), (np.inf, 1.0, "non_finite"), (np.nan, np.nan, "passed"),
    (1.0, np.nan, "wrong_values"), (np.inf, np.inf, "passed"), (-np.inf, np.inf, "wrong_values"),
    (np.inf, 1e39, "passed"), (3e38, 1e39, "wrong_values"),
])  # fmt: skip
def test_nan_and_infinity_are_no_wildcards(got: float, expected: float, verdict: str) -> None:
    left = np.array([1, got, 2], np.float32)
    assert compare(left, np.array([1, expected, 2]), LOOSE).verdict == verdict


def test_a_small_error_everywhere_fails_by_its_norm() -> None:
    expected = np.linspace(1, 2, 1000)
    got = (expected * (1 + 9e-4)).astype(np.float32)
    report = compare(got, expected, LOOSE)
    assert report.verdict == "wrong_values"
    assert "relative error of the whole output" in report.reason("y")
    assert compare(got, expected, LOOSE, norm=False).verdict == "passed"


def test_whole_numbers_must_be_exact() -> None:
    expected = np.arange(100, dtype=np.int32)
    got = expected.copy()
    exact = Tolerance(0, 0, 0)
    assert compare(got, expected, exact).verdict == "passed"
    got[50] += 1
    assert compare(got, expected, exact).first == (50,)


@given(st.integers(0, 2**32), st.floats(0, 3e-3), st.sampled_from([1.0, 1e30, 1e-30]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_quick_comparison_never_passes_what_the_thorough_one_fails(
    seed: int, error: float, scale: float, odd: bool
) -> None:
    rng = np.random.default_rng(seed)
    expected = (rng.standard_normal(64) * scale).astype(np.float32)
    got = (expected * (1 + error * rng.standard_normal(64))).astype(np.float32)
    if odd:
        got[rng.integers(64)] = rng.choice([np.nan, np.inf, -np.inf])
    if clearly_equal(got, expected, LOOSE):
        assert compare(got, expected.astype(np.float64), LOOSE).verdict == "passed"


@pytest.mark.parametrize("spread", [stats.bootstrap, stats.robust])
@pytest.mark.parametrize("rounds", [6, 15])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(spread: Spread, rounds: int) -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        logs = math.log(1.1) + 0.02 * rng.standard_t(3, size=rounds)
        found = stats.combine({"w": list(logs)}, "geometric", rng, spread)[0]
        hits += found.low <= 1.1 <= found.high
    assert 180 <= hits <= 200


@given(st.floats(-3, 3), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_one_bad_round_does_not_widen_the_interval(bad: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logs = list(0.1 + 0.005 * rng.standard_normal(10))
    calm = stats.half_width(logs, rng)
    assert stats.half_width([*logs, bad], rng) < 2 * calm + 0.002


def test_drift_cancels_and_disturbed_pairs_are_cut_off() -> None:
    rng = np.random.default_rng(6)
    logs = [0.1 + 0.001 * rng.standard_normal() for _ in range(20)] + [3.0, -2.0, 1.5]
    assert abs(stats.estimate(logs) - 0.1) < 0.003


def test_means_over_workloads() -> None:
    rng = np.random.default_rng(7)
    logs = {"a": [math.log(2.0)] * 5, "b": [math.log(8.0)] * 5}
    assert stats.combine(logs, "geometric", rng)[0].value == pytest.approx(4)
    assert stats.combine(logs, "arithmetic", rng)[0].value == pytest.approx(5)
    assert stats.combine(logs, "geometric", rng)[1]["b"].value == pytest.approx(8)


def test_messages_and_descriptors_travel_and_bad_ones_are_refused() -> None:
    left, right = wire.pair()
    fd = os.memfd_create("x")
    wire.send(left, {"do": "it"}, [fd])
    message, fds = wire.recv(right)
    assert message == {"do": "it"}
    assert len(fds) == 1
    for bad in (b"[1]", b"{", b"x" * 100_000, b'{"a":' * 20_000):
        left.send(bad)
        with pytest.raises(wire.Malformed):
            wire.recv_untrusted(right)
    socket.send_fds(left, [b"{}"], [fd])
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert wire.recv_untrusted(right) == {}
    assert len(list(Path("/proc/self/fd").iterdir())) == before  # what was sent along is dropped
    left.close()
    with pytest.raises(wire.Closed):
        wire.recv(right)
    right.close()
    for one in (fd, *fds):
        os.close(one)


def test_symbols_of_a_shared_object_are_read_without_binutils(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text('#include <cmath>\nextern "C" double run(double x) { return std::lgamma(x); }')
    subprocess.run(["g++", "-shared", "-fPIC", "-o", "a.so", "a.cpp"], cwd=tmp_path, check=True)
    data = (tmp_path / "a.so").read_bytes()
    found = elf.read_symbols(data)
    assert "run" in found.exported
    assert "lgamma" in found.imported
    assert any(name.startswith(("libc.so", "libm.so")) for name in found.needed)
    for cut in (0, 10, 64, len(data) // 2):
        assert isinstance(elf.read_symbols(data[:cut]), elf.Symbols)


@pytest.mark.parametrize(("text", "found"), [
    ("import numpy as np\nnp.dot(1, 2)", "numpy.dot"), ("from numpy import dot as d\nd(1, 2)", "numpy.dot"),
    ("import numpy\nx = 1 @ 2", "numpy.matmul"), ("# numpy.dot\ns = 'numpy.dot'", None),
    ("import numpy as np\nnp.dotty(1)", None), ("def f(:", None),
])  # fmt: skip
def test_forbidden_modules_are_found_under_any_name(text: str, found: str | None) -> None:
    reason = forbidden.in_python(Program({"a.py": text}, "a.py::f", "python"), ["numpy.dot", "numpy.matmul"])
    assert (found in reason) if found and reason else reason is found


def test_buffers_are_apart_aligned_and_cannot_be_shrunk(spec: TaskSpec) -> None:
    layout = lay_out(spec, {"m": 7, "n": 33})
    slots = [*layout.inputs, *layout.outputs]
    assert all(s.offset % 64 == 0 and s.end - s.offset - s.nbytes >= 64 for s in slots)
    assert all(a.end <= b.offset for a, b in itertools.pairwise(slots))
    one = BufferSet(layout)
    with pytest.raises(PermissionError):
        os.ftruncate(one.fd, 0)
    one.close()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int8", "bool"])
def test_poison_differs_from_fill_to_fill_and_nan_poison_is_nan(dtype: str) -> None:
    poison = Poison(np.random.default_rng(1))
    target = np.zeros((37, 1001), dtype)
    poison.fill(target, "nan")
    first = target.copy()
    if np.dtype(dtype).kind == "f":
        assert np.isnan(first).all()
        poison.fill(target, "values")
        assert np.isfinite(target).all()
    poison.fill(target, "values")
    assert (first.view(np.uint8) != target.view(np.uint8)).any()


def test_floors_grow_with_the_work_and_keep_a_margin() -> None:
    found = ceilings.Ceilings((1 << 15, 1 << 20, 1 << 27), (1e11, 5e10, 1e10), 1e11, 0.0)
    assert found.floor_ms(1e8, 0) > found.floor_ms(1e6, 0) > 0
    assert found.floor_ms(0, 1e9) == pytest.approx(1e3 * 1e9 / 1e11 / ceilings.MARGIN)
    assert found.floor_ms(1e6, 1e9, threads=4) == pytest.approx(found.floor_ms(1e6, 1e9) / 4)


def test_a_spec_survives_json(spec: TaskSpec) -> None:
    assert TaskSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    with pytest.raises(ValueError, match=r"unknown fields in a task spec: colour"):
        TaskSpec.from_dict({**spec.to_dict(), "colour": 1})
    with pytest.raises(ValueError, match=r"not a task spec"):
        TaskSpec.from_dict({})


def test_ceilings_of_several_runs_are_the_best_of_them(tmp_path: Path) -> None:
    busy = ceilings.Ceilings(ceilings.SIZES, tuple(1e10 for _ in ceilings.SIZES), 9e10, 1.0, True)
    calm = replace(busy, bytes_per_s=tuple(3e10 for _ in ceilings.SIZES), operations_per_s=8e10, measured_at=2.0)
    both = calm.joined(busy)
    assert both.bytes_per_s == calm.bytes_per_s
    assert both.operations_per_s == 9e10
    assert (both.runs, both.measured_at) == (2, 2.0)
    assert calm.joined(replace(busy, flushed=False)) == calm  # warm caches show more than a timed call can reach
    now = replace(both, measured_at=time.time())
    ceilings.keep(tmp_path, now)
    assert ceilings.cached(tmp_path) == now
    ceilings.keep(tmp_path, both)
    assert ceilings.cached(tmp_path) is None  # too old
