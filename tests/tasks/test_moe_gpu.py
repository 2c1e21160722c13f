"""The bundled MoE task for GPUs. Its values are looked at on the CPU at reduced sizes, where torch is installed."""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ksearch.tasks import Task, load_task

GROUPS, KEPT, TOP, LOCAL, FACTOR = 8, 4, 8, 32, 2.5
HIDDEN, INTERMEDIATE = 256, 128
WEIGHTS = ("gemm1_weights", "gemm2_weights")
TOKENS = [1, 2, 7, 33]

Arrays = dict[str, Any]


@pytest.fixture
def task() -> Task:
    return load_task("moe_fp8_block_scale")


def least(tokens: int) -> tuple[int, int, int]:
    """Experts in use, pairs of token and local expert, tokens with a local expert: what the floor counts on."""
    return min(31, (tokens + 3) // 4, 22 + tokens // 100), (tokens + 1) // 2, (tokens + 3) // 4


# --- what task.toml says, without torch


def test_the_floor_is_what_every_draw_has_to_read_and_compute(task):
    for workload in task.spec.workloads:
        names, tokens = task.spec.names(workload.axes), workload.axes["seq_len"]
        sizes = {t.name: t.size_bytes(names) for t in (*task.spec.inputs, *task.spec.outputs)}
        moved, operations = task.spec.floor(names)
        experts, pairs, placed = least(tokens)
        of_experts = sum(n for name, n in sizes.items() if name.startswith("gemm")) * experts / LOCAL
        of_tokens = (sizes["hidden_states"] + sizes["hidden_states_scale"]) * placed / tokens
        rest = sum(sizes[n] for n in ("routing_logits", "routing_bias", "local_expert_offset", "output"))
        assert moved == of_experts + of_tokens + rest
        assert moved < sum(sizes.values())
        assert operations == 2 * pairs * 3 * 7168 * 2048


def test_one_token_to_many_thousands_are_timed_and_odd_numbers_checked(task):
    timed = [w.axes["seq_len"] for w in task.spec.workloads if w.timed]
    assert min(timed) == 1
    assert max(timed) > 10_000
    assert any(w.axes["seq_len"] % 16 for w in task.spec.workloads if not w.timed)


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


@pytest.fixture
def reference(task, torch) -> ModuleType:
    """At reduced sizes: a local expert has 98304 weights instead of 44 million."""
    made = module(task, "reference.py")
    vars(made).update(HIDDEN=HIDDEN, INTERMEDIATE=INTERMEDIATE)
    return made


def cases(reference: ModuleType, torch: Any, tokens: int, seed: int = 3) -> list[Arrays]:
    generator, axes = torch.Generator().manual_seed(seed), {"seq_len": tokens}
    return [reference.inputs(axes, generator), *reference.awkward(axes, generator)]


def routed(logits: list[float], bias: list[float]) -> dict[int, float]:
    """Expert to weight, of one token; nothing but Python."""
    s = [1 / (1 + math.exp(-x)) for x in logits]
    choice = [a + b for a, b in zip(s, bias, strict=True)]
    size = len(s) // GROUPS
    members = [range(g * size, (g + 1) * size) for g in range(GROUPS)]
    scores = [sum(sorted((choice[e] for e in group), reverse=True)[:2]) for group in members]
    kept = sorted(range(GROUPS), key=lambda g: scores[g], reverse=True)[:KEPT]
    chosen = sorted((e for g in kept for e in members[g]), key=lambda e: choice[e], reverse=True)[:TOP]
    total = sum(s[e] for e in chosen)
    return {e: s[e] / total * FACTOR for e in chosen}


def plain(given: Arrays) -> np.ndarray:
    """The definition in float64, one token and one expert at a time."""
    a = {k: v.double().numpy() for k, v in given.items()}
    x = a["hidden_states"] * np.repeat(a["hidden_states_scale"].T, 128, axis=1)
    w1, w2 = (a[name] * a[f"{name}_scale"].repeat(128, 1).repeat(128, 2) for name in WEIGHTS)
    output, first = np.zeros_like(x), int(a["local_expert_offset"][0])
    for t in range(len(x)):
        for expert, weight in routed(a["routing_logits"][t].tolist(), a["routing_bias"].tolist()).items():
            if first <= expert < first + LOCAL:
                up, gate = np.split(w1[expert - first] @ x[t], 2)
                output[t] += weight * (w2[expert - first] @ (gate / (1 + np.exp(-gate)) * up))
    return output


def share(task: Task, got: Any, want: Any) -> float:
    """The largest error as a share of the tolerance, element by element and in norm (not where all is zero)."""
    limit = task.spec.tolerance["bfloat16"]
    got, want = (np.asarray(v.double() if hasattr(v, "double") else v, dtype=np.float64) for v in (got, want))
    error, size = np.abs(got - want), np.abs(want)
    assert not np.isnan(error).any()
    worst = float((error / (limit.atol + limit.rtol * size)).max())
    return max(worst, np.linalg.norm(error) / (limit.norm * np.linalg.norm(size))) if size.any() else worst


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_reference_is_the_definition(reference, torch, tokens):
    for given in cases(reference, torch, tokens):
        found, want = reference.reference(given, {"seq_len": tokens})["output"].double().numpy(), plain(given)
        empty = ~want.any(axis=1)
        assert not found[empty].any()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_awkward_cases_are_what_they_are_said_to_be(reference, torch):
    tokens = 8
    usual, nowhere, crowded, negative = cases(reference, torch, tokens)

    def local(given):
        first = int(given["local_expert_offset"])
        experts, _, gap = reference.route(given["routing_logits"], given["routing_bias"])
        return ((experts >= first) & (experts < first + LOCAL)).sum(dim=1).tolist(), float(gap.min())

    assert local(nowhere)[0] == [0] * tokens
    assert local(crowded)[0] == [0] * (tokens // 2) + [TOP] * (tokens // 2)
    assert bool((torch.sigmoid(negative["routing_logits"]) + negative["routing_bias"].float() < 0).all())
    for given in (usual, nowhere, negative):
        assert local(given)[1] >= reference.MARGIN
    assert len(cases(reference, torch, 129)) == 1


@pytest.mark.parametrize("tokens", [1, 2, 5, 16, 62, 130, 300, 901])
def test_draws_have_what_the_floor_counts_on_and_are_uneven(reference, torch, tokens):
    generator = torch.Generator().manual_seed(5)
    for _ in range(6):
        drawn = reference._routing(tokens, generator)
        experts, weights, gap = reference.route(drawn["routing_logits"], drawn["routing_bias"])
        first = int(drawn["local_expert_offset"])
        here = (experts >= first) & (experts < first + LOCAL)
        found = len(experts[here].unique()), int(here.sum()), int(here.any(dim=1).sum())
        assert all(n >= m for n, m in zip(found, least(tokens), strict=True))
        assert float(gap.min()) >= reference.MARGIN
        assert first % LOCAL == 0
        torch.testing.assert_close(weights.sum(dim=1), torch.full((tokens,), FACTOR))
        if tokens > 200:
            counts = torch.bincount(experts[here] - first, minlength=LOCAL).float()
            assert 1.5 < float(counts.max() / counts.mean()) < 8
            assert 0.15 < found[2] / tokens < 0.85


def test_scales_are_positive_and_use_the_whole_range(reference, torch):
    given = cases(reference, torch, 16)[0]
    for name in ("hidden_states", *WEIGHTS):
        scale = given[f"{name}_scale"]
        assert float(scale.min()) > 0
        assert float(scale.std() / scale.mean()) > 0.2, "a kernel could take one scale for all"
        assert float(given[name].float().abs().max()) == 448
        assert bool(given[name].float().isfinite().all())


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_baseline_keeps_to_the_tolerance_with_room_to_spare(task, reference, torch, tokens):
    baseline = module(task, "baseline.py")
    for given in cases(reference, torch, tokens):
        before = {k: v.clone() for k, v in given.items()}
        found = baseline.run(*given.values())
        assert (str(found.dtype), found.is_contiguous()) == ("torch.bfloat16", True)
        want = reference.reference(given, {"seq_len": tokens})["output"]
        assert share(task, found, want) < 0.4
        assert not bool(found[~want.any(dim=1)].any()), "a token without a local expert has output 0"
        for name, value in given.items():
            assert torch.equal(value.reshape(-1).view(torch.uint8), before[name].reshape(-1).view(torch.uint8)), name


def changed(reference: ModuleType, given: Arrays, **values: Any) -> Any:
    given = {**given, **values}
    return reference.reference(given, {"seq_len": len(given["routing_logits"])})["output"]


@pytest.mark.parametrize("block", [32, 64, 128])
def test_a_middle_in_float8_keeps_to_the_tolerance(task, reference, torch, monkeypatch, block):
    silu = torch.nn.functional.silu

    class Rounded:
        """Stands for silu(gate): its product with `up` is quantised."""

        def __init__(self, value):
            self.value = value

        def __mul__(self, up):
            h = (self.value * up).view(len(up), -1, block)
            scale = h.abs().amax(dim=-1, keepdim=True) / 448
            return ((h / scale).to(torch.float8_e4m3fn).float() * scale).view(up.shape)

    given = cases(reference, torch, 33)[0]
    want = changed(reference, given)
    monkeypatch.setattr(torch.nn.functional, "silu", lambda gate: Rounded(silu(gate)))
    assert 0.2 < share(task, changed(reference, given), want) < 0.8


def test_each_row_is_judged_apart(task, reference, torch):
    """Among many: a row with a local expert left zero, one without given half of another's values."""
    given = cases(reference, torch, 130)[0]
    want = changed(reference, given)
    with_local = want.any(dim=1)
    some = want[with_local.nonzero()[0, 0]]
    for t in range(0, len(want), 3):
        wrong = want.clone()
        wrong[t] = 0 if with_local[t] else some / 2
        assert share(task, wrong, want) > 1, t
    assert 30 < int(with_local.sum()) < 110


def test_what_is_wrong_is_refused(task, reference, torch, monkeypatch):
    """Routing with one step left out or another in its place, layers with one thing changed, each input moved along."""
    given = cases(reference, torch, 33)[0]
    want = changed(reference, given)
    experts, weights, _ = reference.route(given["routing_logits"], given["routing_bias"])
    s, bias = torch.sigmoid(given["routing_logits"]), given["routing_bias"].float()
    ungrouped = (s + bias).topk(TOP).indices
    with_bias = (s + bias).gather(1, experts)
    routes = {
        "no groups": (ungrouped, _shares(s.gather(1, ungrouped))),
        "no bias": reference.route(given["routing_logits"], given["routing_bias"] * 0)[:2],
        "weights not divided by their sum": (experts, s.gather(1, experts)),
        "no factor": (experts, weights / FACTOR),
        "equal weights": (experts, torch.full_like(weights, FACTOR / TOP)),
        "the last chosen left out": (experts[:, : TOP - 1], _shares(s.gather(1, experts)[:, : TOP - 1])),
        "one expert for each token": (experts[:, :1], weights[:, :1]),
    }
    assert share(task, want * 0, want) > 1
    for name, (which, weight) in routes.items():
        with monkeypatch.context() as patched:
            patched.setattr(reference, "route", lambda *_, a=which, b=weight: (a, b, None))
            assert share(task, changed(reference, given), want) > 1, name
    assert share(task, want * 0 + want.mean(), want) > 1
    assert float((with_bias - s.gather(1, experts)).abs().max()) > 0.02, "the bias is of no consequence"
    gemm1 = given["gemm1_weights"].view(torch.uint8).roll(INTERMEDIATE, 1).view(torch.float8_e4m3fn)
    assert share(task, changed(reference, given, gemm1_weights=gemm1), want) > 1, "gate and up exchanged"
    for name, value in given.items():
        if name.endswith("_scale"):
            assert share(task, changed(reference, given, **{name: value * 0 + value.mean()}), want) > 1, name
        flat = value.view(torch.uint8) if value.element_size() == 1 else value
        moved = flat + 1 if flat.numel() == 1 else flat.reshape(-1).roll(1).view(flat.shape)
        assert share(task, changed(reference, given, **{name: moved.view(value.dtype)}), want) > 1, name


def _shares(s: Any) -> Any:
    return s / s.sum(dim=-1, keepdim=True) * FACTOR


def test_inputs_are_as_declared_at_every_workload(task, torch, monkeypatch):
    """Weights are not drawn: nothing but their shapes is looked at."""
    reference = module(task, "reference.py")

    def weights(rows, columns, *_):
        return (
            torch.empty((LOCAL, rows, columns), dtype=torch.float8_e4m3fn, device="meta"),
            torch.empty((LOCAL, rows // 128, columns // 128), device="meta"),
        )

    monkeypatch.setattr(reference, "_weights", weights)
    for workload in task.spec.workloads:
        if workload.axes["seq_len"] > 600:
            continue
        names = task.spec.names(workload.axes)
        given = reference.inputs(dict(workload.axes), torch.Generator().manual_seed(7))
        assert list(given) == [t.name for t in task.spec.inputs]
        for tensor in task.spec.inputs:
            found = given[tensor.name]
            assert (tuple(found.shape), str(found.dtype)) == (tensor.dims(names), f"torch.{tensor.dtype}")
            assert found.is_contiguous()


# --- the Triton program, in Triton's interpreter


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton")


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("tokens", "few"), [(7, True), (5, False)])
def test_the_triton_program_is_right_in_tritons_interpreter(task, reference, torch, interpreted, tokens, few):
    """On the same values as fp32: the interpreter (of Triton 3.9) multiplies the bits of FP8, not their values."""
    strong = module(task, "strong.py")
    strong.MOST_OF_FEW = 512 if few else 0
    for given in cases(reference, torch, tokens):
        wide = [v.float() if v.is_floating_point() else v for v in given.values()]
        found, want = strong.run(*wide), reference.reference(given, {"seq_len": tokens})["output"]
        assert share(task, found, want) < 0.3
        assert not bool(found[~want.any(dim=1)].any())
