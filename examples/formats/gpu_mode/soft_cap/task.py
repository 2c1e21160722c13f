from typing import TypedDict

import torch

input_t = tuple[torch.Tensor, torch.Tensor, dict]
output_t = torch.Tensor


class TestSpec(TypedDict):
    rows: int
    columns: int
    kind: str
    seed: int
