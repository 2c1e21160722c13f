import torch
import torch.nn as nn


class Model(nn.Module):
    """Each row minus its largest value, then x / (1 + |x|)."""

    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shifted = x - x.max(dim=1, keepdim=True).values
        return shifted / (1 + shifted.abs())


rows = 128
columns = 500


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
