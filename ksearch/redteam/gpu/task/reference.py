"""Row softmax of x @ w, in float64, on the GPU."""

from __future__ import annotations

import torch


def inputs(axes: dict[str, int], generator: torch.Generator) -> dict[str, torch.Tensor]:
    rows, cols = axes["R"], axes["C"]
    return {
        "x": torch.randn((rows, cols), device="cuda", generator=generator),
        "w": torch.randn((cols, cols), device="cuda", generator=generator) * (2.0 / cols**0.5),
    }


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    return {"y": torch.softmax(inputs["x"].double() @ inputs["w"].double(), dim=1)}


def awkward(axes: dict[str, int], generator: torch.Generator) -> list[dict[str, torch.Tensor]]:
    """Scores that overflow without subtracting the maximum (whole numbers, exact in every type), and equal scores."""
    rows, cols = axes["R"], axes["C"]
    one = torch.eye(cols, device="cuda")
    whole = torch.randn((rows, cols), device="cuda", generator=generator).mul_(2).round_().clamp_(-20, 20)
    return [{"x": whole + 160, "w": one}, {"x": torch.zeros((rows, cols), device="cuda"), "w": one}]
