"""The bundled programs against the references on every workload, called through ctypes and NumPy directly."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ksearch.tasks import Task, bundled_tasks, init_task, load_task
from ksearch.types import Program

Arrays = dict[str, np.ndarray]
FLAGS = ["-O3", "-march=native", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
ON_CPU = [name for name in bundled_tasks() if load_task(name).spec.device == "cpu"]  # the others need torch
PROGRAMS = [(name, label) for name in ON_CPU for label in ("baseline", *load_task(name).strong)]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _callable(program: Program, folder: Path, build: Path) -> Callable[..., object]:
    file, _, symbol = program.entry_point.partition("::")
    if program.language == "python":
        return getattr(_module(folder / file), symbol)
    library = build / "program.so"
    subprocess.run(["g++", *FLAGS, str(folder / file), "-o", str(library)], check=True, timeout=100)
    function = getattr(ctypes.CDLL(str(library)), symbol)
    function.restype = None
    return function


def _outputs(task: Task, axes: dict[str, int]) -> Arrays:
    """Filled with a value that no kernel gives: what is left untouched shows."""
    names = task.spec.names(axes)
    return {t.name: np.full(t.dims(names), 12345, dtype=t.dtype) for t in task.spec.outputs}


def _call(task: Task, program: Program, run: Callable[..., object], inputs: Arrays, axes: dict[str, int]) -> Arrays:
    outputs = _outputs(task, axes)
    if program.language == "python":
        given = run(*inputs.values(), *outputs.values()) if task.name == "gemm" else run(*inputs.values())
        if given is not None:
            outputs = dict(zip(outputs, given, strict=True))
        return outputs
    arrays = [*(inputs[t.name] for t in task.spec.inputs), *outputs.values()]
    run(*(ctypes.c_void_p(a.ctypes.data) for a in arrays), *(ctypes.c_int64(axes[a]) for a in task.spec.axes))
    return outputs


def _check(task: Task, got: Arrays, want: Arrays) -> None:
    for tensor in task.spec.outputs:
        g, w, limit = got[tensor.name].astype(np.float64), want[tensor.name], task.spec.tolerance[tensor.dtype]
        assert g.shape == w.shape
        finite = np.isfinite(w)
        assert np.array_equal(g[~finite], w[~finite])
        error = np.abs(g[finite] - w[finite])
        assert (error <= limit.atol + limit.rtol * np.abs(w[finite])).all(), (tensor.name, error.max())
        assert np.linalg.norm(error) <= limit.norm * np.linalg.norm(w[finite])


def _check_inputs(task: Task, inputs: Arrays, axes: dict[str, int]) -> None:
    names = task.spec.names(axes)
    assert list(inputs) == [t.name for t in task.spec.inputs]
    for tensor in task.spec.inputs:
        array = inputs[tensor.name]
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (tensor.dims(names), tensor.dtype, True)


@pytest.mark.parametrize(("name", "label"), PROGRAMS)
def test_a_bundled_program_is_right_on_every_workload(name, label, tmp_path):
    task = load_task(name)
    program = task.baseline if label == "baseline" else task.strong[label]
    run, reference = _callable(program, task.folder, tmp_path), _module(task.reference_path)
    for workload in task.spec.workloads:
        axes = dict(workload.axes)
        rng = np.random.default_rng(20)
        cases = [reference.inputs(axes, rng)]
        if task.spec.floor(axes)[0] < 8e6:  # the awkward cases of large workloads only cost time
            cases += reference.awkward(axes, rng)
        for inputs in cases:
            _check_inputs(task, inputs, axes)
            before = {key: array.copy() for key, array in inputs.items()}
            want = reference.reference(inputs, axes)
            _check(task, _call(task, program, run, inputs, axes), want)
            for key, array in inputs.items():
                assert np.array_equal(array, before[key], equal_nan=True), f"{key} was changed"


@pytest.mark.parametrize("language", ["cpp", "python"])
def test_the_template_is_right_on_every_workload(language, tmp_path):
    task = init_task(tmp_path / "new", language=language)
    run, reference = _callable(task.baseline, task.folder, tmp_path), _module(task.reference_path)
    for workload in task.spec.workloads:
        axes = dict(workload.axes)
        rng = np.random.default_rng(4)
        for inputs in (reference.inputs(axes, rng), *reference.awkward(axes, rng)):
            _check_inputs(task, inputs, axes)
            _check(task, _call(task, task.baseline, run, inputs, axes), reference.reference(inputs, axes))


@pytest.mark.parametrize("name", ON_CPU)
def test_references_hold_at_the_corners_of_the_domain(name):
    """Shapes that a confirmation may draw: all axes at their least, and odd ones in between."""
    task = load_task(name)
    reference = _module(task.reference_path)
    for pick in (0, 1, 2):
        axes = {a: (d.values[pick] if d.values else min(d.max, d.min + 3 * pick)) for a, d in task.spec.domain.items()}
        rng = np.random.default_rng(pick)
        for inputs in (reference.inputs(axes, rng), *reference.awkward(axes, rng)):
            _check_inputs(task, inputs, axes)
            want = reference.reference(inputs, axes)
            names = task.spec.names(axes)
            assert {n: a.shape for n, a in want.items()} == {t.name: t.dims(names) for t in task.spec.outputs}
            assert all(a.dtype == np.float64 and not np.isnan(a).any() for a in want.values())


@pytest.mark.parametrize("name", bundled_tasks())
def test_a_bundled_task_has_what_a_search_needs(name):
    spec = load_task(name).spec
    timed = [w for w in spec.workloads if w.timed]
    assert len(timed) >= 4
    assert any(not w.timed for w in spec.workloads)
    assert any(any(v % 8 for v in w.axes.values()) for w in timed), "no ragged size among the timed ones"
    assert all(min(spec.floor(spec.names(w.axes))) > 0 for w in timed)
    assert spec.description
    assert spec.name == name


def test_an_empty_sequence_gives_zero_and_minus_infinity():
    task = load_task("gqa_paged_decode")
    reference = _module(task.reference_path)
    axes = dict(task.spec.workloads[0].axes)
    inputs = reference.inputs(axes, np.random.default_rng(0))
    empty = int(np.flatnonzero(inputs["seq_lens"] == 0)[0])
    want = reference.reference(inputs, axes)
    assert (want["out"][empty] == 0).all()
    assert np.isneginf(want["lse"][empty]).all()
    assert inputs["seq_lens"].sum() == axes["total_tokens"]


def test_lse_is_in_base_two():
    """One sequence with one token: log2(exp(q . k / sqrt(d))) = q . k / sqrt(d) / ln 2."""
    task = load_task("gqa_paged_decode")
    reference = _module(task.reference_path)
    axes = {"batch_size": 1, "num_kv_heads": 1, "group_size": 1, "head_dim": 64, "page_size": 1, "total_tokens": 1}
    inputs = reference.inputs(axes, np.random.default_rng(0))
    page = inputs["page_table"][0, 0]
    score = float(inputs["q"][0, 0].astype(float) @ inputs["k_cache"][page, 0, 0].astype(float)) / 8
    want = reference.reference(inputs, axes)
    assert want["lse"][0, 0] == pytest.approx(score / np.log(2))
    np.testing.assert_allclose(want["out"][0, 0], inputs["v_cache"][page, 0, 0])


def test_triangle_multiplication_is_its_definition():
    """The reference uses matrix products; here is the sum over k spelled out with einsum."""
    task = load_task("trimul")
    r = _module(task.reference_path)
    axes = {"batch": 2, "n": 4, "c": 5, "h": 3}
    t = r.inputs(axes, np.random.default_rng(1))

    def norm(x, w, b):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    t = {k: v.astype(np.float64) for k, v in t.items()}
    z = norm(t["x"], t["norm_weight"], t["norm_bias"])
    mask = t["mask"][..., None]
    left = (z @ t["w_left"]) * mask * sigmoid(z @ t["w_left_gate"])
    right = (z @ t["w_right"]) * mask * sigmoid(z @ t["w_right_gate"])
    out = norm(np.einsum("bikh,bjkh->bijh", left, right), t["out_norm_weight"], t["out_norm_bias"])
    y = (out * sigmoid(z @ t["w_out_gate"])) @ t["w_out"]
    np.testing.assert_allclose(r.reference(t, axes)["y"], y, rtol=1e-9, atol=1e-9)
