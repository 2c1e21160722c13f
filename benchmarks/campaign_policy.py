"""Does it help to move a campaign's budget? Simulated tasks, and the product's own rule (ksearch.service.allotting).

    python benchmarks/campaign_policy.py [--tasks N]     about two minutes for 500 tasks

Each task of eight of the families of `landscape.py` is searched alone for 480 evaluations; campaigns of 20 tasks then
share out 30, 60 or 120 evaluations a task along these curves. "Done" tasks gain nothing after their 15th evaluation, as
real ones do that are near their floor. Printed: the geometric mean of the best programs, over that of equal parts.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
from collections.abc import Sequence

from simulated.ours import ours
from simulated.world import Landscape, Mind, make_task

from ksearch.service.allotting import Rules, Standing, Step, next_grant

LONG, GROUP, DONE_AT = 480, 20, 15
FAMILIES = (
    Landscape(), Landscape(steps=1), Landscape(steps=2), Landscape(fail=0.2), Landscape(fail=0.8),
    Landscape(noise=0.2), Landscape(noise=1.0), Landscape(foresight=0.0),
)  # fmt: skip


def curve(seed: int) -> list[float]:
    """Log speed of the best after each evaluation."""
    task = make_task(FAMILIES[seed % len(FAMILIES)], seed)
    found = [0.0, *ours(task, Mind(task, seed), LONG, random.Random(f"campaign {seed}")).curve]
    found = list(itertools.accumulate(found, max))
    return found + [found[-1]] * (LONG + 1 - len(found))


def made(curves: Sequence[Sequence[float]], rules: Rules) -> list[int]:
    """Evaluations that each task of a campaign gets."""
    steps = [tuple(Step(n, log_speed=speed) for n, speed in enumerate(c)) for c in curves]
    counts = [0] * len(curves)

    def standing(i: int) -> Standing:
        return Standing(str(i), counts[i], "end of the curve" if counts[i] >= LONG else "", steps[i][: counts[i] + 1])

    while grant := next_grant([standing(i) for i in range(len(curves))], rules):
        i = int(grant.task)
        counts[i] = min(LONG, counts[i] + grant.evaluations)
    return counts


def compare(curves: Sequence[Sequence[float]], each: int, part: int) -> tuple[float, float, float]:
    """Moved over equal parts, with the 95% interval over campaigns."""
    gains = []
    for start in range(0, len(curves) - GROUP + 1, GROUP):
        group = curves[start : start + GROUP]
        counts = made(group, Rules(each * GROUP, part, part))
        gains.append(statistics.fmean(c[n] - c[each] for c, n in zip(group, counts, strict=True)))
    mean, half = statistics.fmean(gains), 1.96 * statistics.stdev(gains) / math.sqrt(len(gains))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=500, metavar="N", help="default: 500; at least 40")
    curves = [curve(seed) for seed in range(max(40, parser.parse_args().tasks))]
    print("| Tasks | Evaluations a task | Parts of 10 | Parts of 20 | Parts of 30 |\n|---|---|---|---|---|")
    for label, every in (("none done", 1), ("half of them done", 2), ("four in five done", 5)):
        shown = [
            c if i % every == 0 else [*c[:DONE_AT], *[c[DONE_AT]] * (LONG + 1 - DONE_AT)] for i, c in enumerate(curves)
        ]
        random.Random(1).shuffle(shown)
        for each in (30, 60, 120):
            found = [compare(shown, each, part) for part in (10, 20, 30)]
            cells = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in found]
            print(f"| {label} | {each} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
