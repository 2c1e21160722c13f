"""Fakes and contract tests, shipped for authors of plugins."""
