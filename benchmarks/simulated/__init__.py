"""Synthetic tasks with hidden structure, simulated minds, and the policies that `landscape.py` compares."""
