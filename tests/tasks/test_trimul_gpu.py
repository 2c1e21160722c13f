"""The bundled GPU task without torch: what its file says. Values are judged on a GPU, and where torch is, below."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from ksearch.tasks import Task, load_task


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("trimul_gpu")


def test_loading_it_imports_no_torch(task):
    assert task.spec.device == "cuda"
    assert "torch" not in sys.modules or importlib.util.find_spec("torch") is not None
    assert task.spec.baseline.language == "python"
    assert task.strong["triton"].language == "triton"


def test_seven_shapes_are_timed_and_eighteen_more_are_checked(task):
    timed = [w for w in task.spec.workloads if w.timed]
    assert [tuple(w.axes[a] for a in ("n", "batch", "c", "mask_kind", "distribution")) for w in timed] == [
        (256, 2, 128, 1, 1), (768, 1, 128, 1, 2), (256, 2, 384, 2, 1), (512, 1, 128, 1, 1), (1024, 1, 128, 1, 2),
        (768, 1, 384, 2, 1), (1024, 1, 384, 1, 1),
    ]  # fmt: skip
    assert task.spec.mean == "geometric"
    checked = [w.axes for w in task.spec.workloads if not w.timed]
    assert len(checked) == 18
    assert {a["mask_kind"] for a in checked} == {1, 2, 3}
    assert {a["distribution"] for a in checked} == {1, 2}
    assert (min(a["n"] for a in checked), max(a["n"] for a in checked)) == (32, 1024)
    assert max(a["c"] for a in checked) == 768


def test_the_floor_is_no_more_than_the_arrays_and_the_definition(task):
    for workload in task.spec.workloads:
        axes, names = workload.axes, task.spec.names(workload.axes)
        moved, operations = task.spec.floor(names)
        assert moved <= sum(t.size_bytes(names) for t in (*task.spec.inputs, *task.spec.outputs))
        pairs = axes["batch"] * axes["n"] ** 2
        whole = 12 * pairs * axes["c"] * 128 + 2 * pairs * axes["n"] * 128
        assert operations == whole if axes["mask_kind"] != 2 else whole / 4 < operations < whole


@pytest.fixture
def parts(task) -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch")
    scopes: list[dict[str, Any]] = []
    for name in ("reference.py", "baseline.py"):
        scopes.append({"__name__": name})
        exec(compile((task.folder / name).read_text(), name, "exec"), scopes[-1])  # noqa: S102
    return torch, *scopes


@pytest.mark.parametrize(("mask_kind", "distribution"), [(1, 1), (2, 2), (3, 1)])
def test_the_baseline_agrees_with_the_reference_where_torch_is(parts, mask_kind, distribution):
    torch, reference, baseline = parts
    axes = {"batch": 2, "n": 32, "c": 64, "mask_kind": mask_kind, "distribution": distribution}
    generator = torch.Generator().manual_seed(5)
    for given in (reference["inputs"](axes, generator), *reference["awkward"](axes, generator)):
        want = reference["reference"](given, axes)["y"]
        assert want.dtype == torch.float64
        torch.testing.assert_close(baseline["run"](*given.values()).double(), want, rtol=1e-4, atol=1e-4)
    values = set(reference["inputs"](axes, generator)["mask"].unique().tolist())
    assert (values == {1.0}, values == {0.0, 1.0}, len(values) > 2) == (
        mask_kind == 1, mask_kind == 2, mask_kind == 3,
    )  # fmt: skip
