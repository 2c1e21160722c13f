"""Cheats on NVIDIA GPUs: the same rules as on a CPU, a task and a table of their own."""
