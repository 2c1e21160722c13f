"""The bundled attention tasks for GPUs. Their values are looked at on the CPU, where torch is installed."""

from __future__ import annotations

import importlib.util
import math
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ksearch.tasks import Task, load_task

DECODE = ("gqa_paged_decode_gpu", "mla_paged_decode")
NAMES = (*DECODE, "mla_paged_prefill")
# batch_size, num_kv_indices, pages beyond those in use; for prefill also total_q
SMALL = [(1, 1, 0, 1), (3, 7, 2, 5), (5, 3, 4, 2), (4, 300, 11, 61), (2, 140, 0, 140), (13, 40, 3, 9)]
LN2 = math.log(2)

Arrays = dict[str, Any]


@pytest.fixture(params=NAMES)
def task(request: pytest.FixtureRequest) -> Task:
    return load_task(request.param)


def axes_of(task: Task, batch: int, tokens: int, beyond: int, queries: int) -> dict[str, int]:
    axes = {"batch_size": batch, "num_pages": tokens + beyond, "num_kv_indices": tokens}
    return axes | ({"total_q": queries} if "total_q" in task.spec.axes else {})


# --- what task.toml says, without torch


def test_the_floor_is_no_more_than_the_arrays(task):
    for workload in task.spec.workloads:
        names = task.spec.names(workload.axes)
        moved, operations = task.spec.floor(names)
        assert 0 < moved <= sum(t.size_bytes(names) for t in (*task.spec.inputs, *task.spec.outputs))
        assert operations > 0


def test_small_and_large_batches_are_timed_and_odd_sizes_checked(task):
    timed = [w.axes for w in task.spec.workloads if w.timed]
    checked = [w.axes for w in task.spec.workloads if not w.timed]
    assert min(a["batch_size"] for a in timed) == 1
    assert max(a["batch_size"] for a in timed) >= 56
    assert any(a["batch_size"] % 2 and a["num_kv_indices"] % 2 for a in checked)
    fewest = "total_q" if "total_q" in task.spec.axes else "num_kv_indices"
    assert any(a[fewest] < a["batch_size"] for a in checked), "no workload has empty sequences for sure"
    assert any("lse = -inf" in line or "= -inf" in line for line in task.spec.description.splitlines())


# --- values, where torch is


def module(task: Task, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{task.name}_{file[:-3]}", task.folder / file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def cases(task: Task, torch: Any, axes: dict[str, int], seed: int = 3) -> list[Arrays]:
    reference, generator = module(task, "reference.py"), torch.Generator().manual_seed(seed)
    return [reference.inputs(axes, generator), *reference.awkward(axes, generator)]


def plain(task: Task, given: Arrays) -> dict[str, np.ndarray]:
    """The definition, in float64: one query, one head at a time."""
    a = {k: v.double().numpy() if v.is_floating_point() else v.tolist() for k, v in given.items()}
    gqa = "k_cache" in a
    query = a["q"] if gqa else np.concatenate([a["q_nope"], a["q_pe"]], axis=-1)
    total, heads, _ = query.shape
    output, lse = np.zeros((total, heads, 128 if gqa else 512)), np.full((total, heads), -np.inf)
    asked = a.get("qo_indptr", list(range(len(a["kv_indptr"]))))
    for (first, last), (start, end) in zip(pairwise(asked), pairwise(a["kv_indptr"]), strict=True):
        for i in range(first, last):
            pages = a["kv_indices"][start : end - (last - 1 - i)] if end > start else []
            for h in range(heads if pages else 0):
                if gqa:
                    keys, values = a["k_cache"][pages, 0, h // 8], a["v_cache"][pages, 0, h // 8]
                else:
                    values = a["ckv_cache"][pages, 0]
                    keys = np.concatenate([values, a["kpe_cache"][pages, 0]], axis=-1)
                s = keys @ query[i, h] * task.spec.constants["sm_scale"]
                weights = np.exp(s - s.max())
                output[i, h] = weights @ values / weights.sum()
                lse[i, h] = (s.max() + np.log(weights.sum())) / LN2
    return {"output": output, "lse": lse}


def share(task: Task, got: Arrays, want: Arrays) -> float:
    """The largest error as a share of the tolerance, element by element and in norm; infinities must be equal."""
    worst = 0.0
    for tensor in task.spec.outputs:
        limit = task.spec.tolerance[tensor.dtype]
        g, w = (np.asarray(x[tensor.name], dtype=np.float64) for x in (got, want))
        assert g.shape == w.shape
        finite = np.isfinite(w)
        assert np.array_equal(g[~finite], w[~finite])
        error, size = np.abs(g[finite] - w[finite]), np.abs(w[finite])
        assert not np.isnan(error).any(), f"{tensor.name} has NaN"
        worst = max([worst, *(error / (limit.atol + limit.rtol * size)).ravel()])
        worst = max(worst, np.linalg.norm(error) / (limit.norm * np.linalg.norm(size) or 1.0))
    return worst


def answers(module_: ModuleType, given: Arrays) -> Arrays:
    output, lse = module_.run(*given.values())
    assert (str(output.dtype), str(lse.dtype)) == ("torch.bfloat16", "torch.float32")
    assert output.is_contiguous()
    assert lse.is_contiguous()
    return {"output": output.double().numpy(), "lse": lse.double().numpy()}


@pytest.mark.parametrize("size", SMALL, ids=str)
def test_the_reference_is_the_definition(task, torch, size):
    axes = axes_of(task, *size)
    reference = module(task, "reference.py")
    for given in cases(task, torch, axes):
        found = {k: v.double().numpy() for k, v in reference.reference(given, axes).items()}
        want = plain(task, given)
        empty = np.isneginf(want["lse"])
        assert (found["output"][empty] == 0).all()
        assert np.isneginf(found["lse"][empty]).all()
        np.testing.assert_allclose(found["lse"][~empty], want["lse"][~empty], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(found["output"], want["output"], rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("size", SMALL, ids=str)
def test_the_baseline_keeps_to_the_tolerance_with_room_to_spare(task, torch, size):
    axes = axes_of(task, *size)
    reference, baseline = module(task, "reference.py"), module(task, "baseline.py")
    for given in cases(task, torch, axes):
        before = {k: v.clone() for k, v in given.items()}
        found = answers(baseline, given)
        assert share(task, found, reference.reference(given, axes)) < 0.5
        assert all(torch.equal(v.view(torch.uint8), before[k].view(torch.uint8)) for k, v in given.items())


def test_the_prefill_baseline_is_right_when_it_takes_the_queries_in_parts(torch, monkeypatch):
    task = load_task("mla_paged_prefill")
    reference, baseline = module(task, "reference.py"), module(task, "baseline.py")
    axes = axes_of(task, 3, 80, 5, 50)
    monkeypatch.setattr(baseline, "MOST_SCORES", 3 * 16 * 80 * 7)
    monkeypatch.setattr(reference, "MOST_SCORES", 16 * 80 * 4)
    for given in cases(task, torch, axes):
        want = plain(task, given)
        assert share(task, answers(baseline, given), want) < 0.5
        assert share(task, reference.reference(given, axes), want) < 0.01


@pytest.mark.parametrize("size", SMALL[2:4], ids=str)
def test_what_is_wrong_is_refused_and_every_input_matters(task, torch, size):
    """Zeros, a constant, half of one head's tokens, another base of the logarithm; each input moved along by one."""
    axes = axes_of(task, *size)
    reference = module(task, "reference.py")
    given = reference.inputs(axes, torch.Generator().manual_seed(1))
    want = reference.reference(given, axes)
    finite = want["lse"].isfinite()
    assert share_of_finite(task, {k: torch.zeros_like(v) for k, v in want.items()}, want, finite) > 1
    assert share_of_finite(task, {**want, "lse": want["lse"] * LN2}, want, finite) > 1
    assert share_of_finite(task, {**want, "output": want["output"].mean().expand_as(want["output"])}, want, finite) > 1
    for name in given:
        moved = {**given, name: given[name].reshape(-1).roll(1).view(given[name].shape)}
        found = reference.reference(moved, axes)
        same = torch.equal(found["lse"].isneginf(), want["lse"].isneginf())
        if same and not (name == "kv_indices" and size[1] <= size[0]):
            assert share_of_finite(task, found, want, finite) > 1, name


def share_of_finite(task: Task, got: Arrays, want: Arrays, finite: Any) -> float:
    return share(task, *({"output": x["output"], "lse": x["lse"][finite]} for x in (got, want)))


def test_inputs_are_as_declared_at_every_workload(task, torch, monkeypatch):
    """Large arrays are not drawn: nothing but their shapes is looked at."""
    reference = module(task, "reference.py")

    def randn(shape, dtype, **_):
        return torch.empty(shape, dtype=dtype, device="meta")

    patched = SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("_")})
    patched.randn = randn
    monkeypatch.setattr(reference, "torch", patched)
    for workload in task.spec.workloads:
        names = task.spec.names(workload.axes)
        given = reference.inputs(dict(workload.axes), torch.Generator().manual_seed(7))
        assert list(given) == [t.name for t in task.spec.inputs]
        for tensor in task.spec.inputs:
            found = given[tensor.name]
            assert (tuple(found.shape), str(found.dtype)) == (tensor.dims(names), f"torch.{tensor.dtype}")
        _sound(task, workload.axes, given)


def _sound(task: Task, axes: Any, given: Arrays) -> None:
    used = given["kv_indices"]
    assert len(used.unique()) == axes["num_kv_indices"]
    assert used.max() < axes["num_pages"]
    kept = given["kv_indptr"].diff()
    assert int(given["kv_indptr"][0]) == 0
    assert int(kept.sum()) == axes["num_kv_indices"]
    asked = given["qo_indptr"].diff() if "qo_indptr" in given else (kept * 0 + 1)
    assert (kept >= 0).all()
    if "qo_indptr" in given:
        assert (asked >= 0).all()
        assert (kept >= asked).all()
        assert int(asked.sum()) == axes["total_q"]
        pairs = int((asked * (kept - asked) + asked * (asked + 1) // 2).sum())
    else:
        pairs = axes["num_kv_indices"]
    heads, wide = task.spec.constants["num_qo_heads"], 256 if "gqa" in task.name else 1088
    floor = task.spec.floor(task.spec.names(axes))[1]
    assert floor <= 2 * heads * wide * pairs
    assert floor >= 2 * heads * wide * pairs * (0.3 if "qo_indptr" in given else 1)


# --- the Triton programs, in Triton's interpreter


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton")


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", SMALL, ids=str)
def test_the_triton_program_is_right_in_tritons_interpreter(task, torch, interpreted, size):
    """On the same values as fp32: the interpreter (of Triton 3.9) multiplies the bits of bfloat16, not their values."""
    assert task.strong["triton"].language == "triton"
    reference, strong = module(task, "reference.py"), module(task, "strong.py")
    axes = axes_of(task, *size)
    for given in cases(task, torch, axes):
        wide = [v.float() if v.is_floating_point() else v for v in given.values()]
        found = dict(zip(("output", "lse"), strong.run(*wide), strict=True))
        assert share(task, found, reference.reference(given, axes)) < 0.02
