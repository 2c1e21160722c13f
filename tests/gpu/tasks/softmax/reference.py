"""Row softmax: what the right answer is, in float64, on the GPU."""

from __future__ import annotations

import torch


def inputs(axes: dict[str, int], generator: torch.Generator) -> dict[str, torch.Tensor]:
    shape = (axes["rows"], axes["cols"])
    x = torch.randn(shape, device="cuda", generator=generator)
    x *= torch.rand((shape[0], 1), device="cuda", generator=generator) * 3 + 0.5
    return {"x": x}


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    return {"y": torch.softmax(inputs["x"].double(), dim=1)}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[dict[str, torch.Tensor]]:
    """Rows that overflow without the shift; masked scores."""
    plain = torch.randn((axes["rows"], axes["cols"]), device="cuda", generator=generator)
    masked = plain.clone()
    masked[:, 1::2] = float("-inf")
    return [{"x": plain + 1e4}, {"x": masked}]
