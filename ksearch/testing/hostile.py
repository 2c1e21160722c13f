"""What providers do to those who call them: a catalogue of answers, each with what must come of it.

A case is made from the sound text of a reply (a plan or a program), so that what it damages is worth taking. The tests
play each against whole runs, and `docs/hostile.md` shows what happened; `CASES` may serve your own client as well:

```python
with ModelServer([CASES[0].answer("hello")]) as server:
    ...
```
"""

from __future__ import annotations

from dataclasses import replace

from ksearch.testing.hostile_api import BODIES, BREAKDOWNS, LIMITS, REJECTIONS
from ksearch.testing.hostile_case import Came, Case, Counted
from ksearch.testing.hostile_texts import CONTENTS, PLANS, PROGRAMS, USAGES

__all__ = ["CASES", "Came", "Case", "Counted"]


def _only(to: str, cases: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(replace(case, to=to) for case in cases)


CASES: tuple[Case, ...] = (
    *LIMITS, *BREAKDOWNS, *REJECTIONS, *BODIES, *CONTENTS, *USAGES, *_only("writer", PROGRAMS), *_only("planner", PLANS)
)  # fmt: skip
