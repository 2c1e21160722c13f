"""K-Search: finds fast, correct kernels by planning on an explicit search tree."""

__version__ = "0.1.0.dev0"
