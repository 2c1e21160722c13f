"""Triangle multiplication over outgoing edges with PyTorch: the definition, one line after the other.

Matrix products take fp32 and may round to TF32: the tolerance allows it, and it is what one would switch on first.
"""

import torch
from torch.nn import functional

torch.backends.cuda.matmul.allow_tf32 = True
EPSILON = 1e-5


def run(
    x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
    out_norm_weight, out_norm_bias, w_out,
):  # fmt: skip
    z = functional.layer_norm(x, norm_weight.shape, norm_weight, norm_bias, EPSILON)
    on = mask.unsqueeze(-1)
    left = (z @ w_left) * on * torch.sigmoid(z @ w_left_gate)
    right = (z @ w_right) * on * torch.sigmoid(z @ w_right_gate)
    gate = torch.sigmoid(z @ w_out_gate)
    out = torch.einsum("bikh,bjkh->bijh", left, right)
    out = functional.layer_norm(out, out_norm_weight.shape, out_norm_weight, out_norm_bias, EPSILON)
    return (out * gate) @ w_out
