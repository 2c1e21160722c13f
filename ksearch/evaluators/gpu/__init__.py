"""The evaluator's parts for NVIDIA GPUs. Only its child processes import torch, for tasks with device "cuda"."""
