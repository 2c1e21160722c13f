"""When a limit is over, out of the words that providers and command lines say it in."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_WORDS = r"(?:try again|resets?|retry|wait|available again|refreshes)"
# "try again in 3 days 4 hours", "Please try again in 6m0.5s", "retry after 20 seconds"
_DURATION = re.compile(
    rf"\b{_WORDS}\s+(?:in|after|for)?\s*((?:\d+(?:\.\d+)?\s*(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|[dhms])"
    r"\b[\s,]*(?:and\s+)?)+|(?:\d+(?:\.\d+)?(?:ms|[dhms]))+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)
_UNITS_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EPOCH = re.compile(r"limit reached\s*\|\s*(\d{10})\b", re.IGNORECASE)
# As in: resets 3pm (Europe/Berlin), resets Dec 4 at 3:05 PM, try again at Dec 4th, 2026 3:05 PM.
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    rf"\b{_WORDS}(?:\s+at|\s+on)?\s+(?:({'|'.join(_MONTHS)})[a-z]*\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s*(?:\d{{4}},?\s*)?"
    r"(?:at\s+)?)?(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b\.?(?:\s*\(([A-Za-z_+-]+(?:/[A-Za-z_+-]+)*)\))?",
    re.IGNORECASE,
)


def reset_s(said: str, now: datetime) -> float | None:
    """Seconds from `now` (with its time zone) until the limit is over, where the words name that."""
    said = said[:20_000]
    if (found := _EPOCH.search(said)) is not None:
        return max(0.0, float(found.group(1)) - now.timestamp())
    if (found := _DURATION.search(said)) is not None:
        parts = _PART.findall(found.group(1))
        return sum((float(number) * _UNITS_S[unit.lower()] for number, unit in parts), 0.0)
    if (found := _CLOCK.search(said)) is not None:
        return _until(found, now)
    return None


def _until(found: re.Match[str], now: datetime) -> float | None:
    """The next time that the clock shows this, a minute later to be on the safe side."""
    month, day, hour, minute, half, zone = found.groups()
    if not 1 <= int(hour) <= 12:
        return None
    try:
        here = now.astimezone(ZoneInfo(zone) if zone else now.tzinfo)
        at = here.replace(
            hour=int(hour) % 12 + (12 if half.lower() == "p" else 0), minute=int(minute or 0), second=0, microsecond=0
        )
        if month:
            at = at.replace(month=_MONTHS.index(month.lower()) + 1, day=int(day))
            at = at if at > here else at.replace(year=at.year + 1)
        elif at <= here:
            at += timedelta(days=1)
    except (ValueError, KeyError, OSError):  # no such zone, hour or day: nothing is named
        return None
    return (at - here).total_seconds() + 60
