"""When a limit is over, in the words of providers and command lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ksearch.models.resets import reset_s

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
H = 3600.0


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Rate limit reached. Please try again in 6m0s.", 360),
        ("Please try again in 7m12.5s. Visit our page", 432.5),
        ("Please try again in 20ms.", 0.02),
        ("You've hit your usage limit. Try again in 3 days 4 hours 5 minutes.", 3 * 24 * H + 4 * H + 300),
        ("try again in 1 hour and 30 minutes", 1.5 * H),
        ("retry after 20 seconds", 20),
        (f"Claude AI usage limit reached|{int(NOON.timestamp()) + 77}", 77),
        ("You've hit your limit · resets 3pm (UTC)", 3 * H + 60),
        ("You've hit your limit · resets 3:30pm (Europe/Berlin)", 2.5 * H + 60),
        ("5-hour limit reached, resets 9am", 21 * H + 60),
        ("weekly limit · resets Dec 4 at 3pm (UTC)", 3 * 24 * H + 3 * H + 60),
        ("try again at Dec 4th, 2026 12:30 PM.", 3 * 24 * H + H / 2 + 60),
        ("resets 12am", 12 * H + 60),
        ("your limit resets Jan 1 at 12pm", 31 * 24 * H + 60),
    ],
)
def test_is_understood(said: str, seconds: float) -> None:
    assert reset_s(said, NOON) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "try again later",
        "resets 25pm",
        "resets 3pm (Nowhere/Atall)",
        "limit reached",
        "resets Feb 31 at 3pm",
        "5 hours",
    ],
)
def test_is_not_guessed(said: str) -> None:
    assert reset_s(said, NOON) is None
