"""What docs/models.md says about providers is what the table of providers holds."""

from __future__ import annotations

from pathlib import Path

from ksearch.models.command import MAX_OUTPUT_BYTES
from ksearch.models.providers import PROVIDERS
from ksearch.models.retry import RetryPolicy

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()


def test_every_provider_and_key_variable_is_named() -> None:
    for provider in PROVIDERS.values():
        assert f"`{provider.name}`" in PAGE
        in_capitals = f"{provider.name.upper()}_API_KEY"
        assert not provider.key_env or f"`{provider.key_env}`" in PAGE or provider.key_env == in_capitals


def test_the_limits_named_are_the_limits_held() -> None:
    policy = RetryPolicy()
    assert f"up to {policy.tries} times" in PAGE
    assert f"more than {policy.max_wait_s:.0f} s" in PAGE
    assert f"more than {MAX_OUTPUT_BYTES // 1_000_000} MB" in PAGE


def test_every_python_example_can_be_read() -> None:
    for block in PAGE.split("```python\n")[1:]:
        compile(block.split("```")[0], "docs/models.md", "exec")
