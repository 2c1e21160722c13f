"""The doctor on a machine with a GPU: every line has a cure where it is not ok, and a GPU task is measured."""

from __future__ import annotations

from ksearch.doctor import Health, can_evaluate
from ksearch.doctor.gpu import gpus


def test_a_gpu_is_examined_and_measures() -> None:
    lines = list(gpus(wanted=True))
    print(*lines, sep="\n")
    named = {line.name: line for line in lines}
    assert {"gpu 0", "torch", "triton", "nvcc", "gpu counters", "gpu evaluation"} <= set(named)
    assert all(bool(line.cure) == (line.health is not Health.OK) for line in lines)
    assert "passed" in named["gpu evaluation"].detail
    assert any(line.name.startswith("gpu sandbox") for line in lines)
    assert can_evaluate(lines)
