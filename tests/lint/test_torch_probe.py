"""What is seen of a reference on torch by itself. On the CPU, where torch is installed; skipped elsewhere."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import Workload
from ksearch.tasks import load_task

torch = pytest.importorskip("torch")
probe = pytest.importorskip("ksearch.lint.torch_probe")

SMALL = {"batch": 1, "n": 32, "c": 64, "mask_kind": 2, "distribution": 1}
TASK = load_task("trimul_gpu")


def rows(text: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Check -> (status, detail) for a reference with this text."""
    (folder / "reference.py").write_text(text)
    spec = replace(TASK.spec, workloads=(Workload("one", SMALL), Workload("checked", SMALL, timed=False)))
    out = io.StringIO()
    probe.look(probe.TorchReference(replace(TASK, spec=spec, folder=folder), "cpu"), out)
    found = [json.loads(line).get("row") for line in out.getvalue().splitlines()]
    return {row["check"]: (row["status"], row["detail"]) for row in found if row}


def test_a_sound_reference_passes_every_check(tmp_path):
    found = rows(TASK.reference_source, tmp_path)
    assert {status for status, _ in found.values()} == {"ok"}, found
    assert found["awkward cases"][1] == "3 cases"
    assert len(found) == 6


END = '    return {"y": y}\n'


@pytest.mark.parametrize(
    ("old", "new", "check", "words"),
    [
        ("import torch\n", "import torch\nraise ValueError('half')\n", "reference loads", "ValueError: half"),
        ("def reference(", "def other(", "reference loads", "no function 'reference'"),
        (END, "    return y\n", "reference runs", "did not return a tensor 'y'"),
        (END, '    return {"y": y[:, 1:]}\n', "reference runs", "has shape"),
        (END, '    y[0, 1, 2, 3] = float("nan")\n' + END, "reference runs", "y of workload 'one' has NaN"),
        (END, "    y += torch.rand_like(y)\n" + END, "reference is deterministic", "another y for the same inputs"),
        (END, "    mask.zero_()\n" + END, "reference leaves its inputs alone", "changes its input mask"),
        (END, '    return {"y": y.half()}\n', "reference is precise", "y in torch.float16"),
        ('"mask": mask,', '"mask": mask.double(),', "reference runs", "mask for"),
        ('"norm_bias": normal(c),', '"norm_bias": torch.randn(c),', "reference is deterministic", "another norm_bias"),
        ("return [gap, shifted, small]", "return gap", "awkward cases", "awkward() returned dict"),
        ('gap["mask"][:, residue, :] = 0', "undefined()", "awkward cases", "NameError"),
    ],
)
def test_what_is_wrong_is_named_by_its_check(tmp_path, old, new, check, words):
    assert old in TASK.reference_source
    found = rows(TASK.reference_source.replace(old, new, 1), tmp_path)
    status, detail = found[check]
    assert status == ("note" if check == "reference is precise" else "fail")
    assert words in detail, detail
