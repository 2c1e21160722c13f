import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    x, scale, config = data
    return torch.mul(x, scale / config["cap"]).tanh_().mul_(config["cap"])
