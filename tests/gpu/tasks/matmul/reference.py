"""Matrix product of bfloat16 values, in fp32 without TF32: exact products, rounding far below bfloat16's."""

from __future__ import annotations

import torch


def inputs(axes: dict[str, int], generator: torch.Generator) -> dict[str, torch.Tensor]:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", generator=generator).to(torch.bfloat16)

    return {"a": draw(axes["m"], axes["k"]), "b": draw(axes["k"], axes["n"])}


def reference(inputs: dict[str, torch.Tensor], axes: dict[str, int]) -> dict[str, torch.Tensor]:
    return {"c": inputs["a"].float() @ inputs["b"].float()}
