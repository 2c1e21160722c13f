"""Search policies on synthetic tasks with hidden structure, and what concurrency costs: docs/search-quality.md.

    python benchmarks/landscape.py               200 tasks of each family: a few minutes on one core
    python benchmarks/landscape.py --seeds 20    a quick look
    python benchmarks/landscape.py --write       and put plots and tables into docs/

No model, no GPU and no clock: everything but the search itself (ksearch.search) is simulated. Same seeds, same figures.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from simulated.ours import EVALUATION_S, MODEL_S, Found, ours
from simulated.plot import Band, Row, dot_chart, line_chart
from simulated.rivals import best_of_n, greedy, islands
from simulated.world import Landscape, Mind, Policy, Task, make_task

from ksearch.service.parallel import shape

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "search-quality.md"
EVALUATIONS = 120  # the product's default
HOURS = 1.0  # of simulated time, where policies are compared by the clock
REFERENCE = Landscape()
FAMILIES = {
    "reference": REFERENCE,
    "1 step: no hidden structure": Landscape(steps=1),
    "2 steps": Landscape(steps=2),
    "5 steps": Landscape(steps=5),
    "attempts fail by 0.2": Landscape(fail=0.2),
    "attempts fail by 0.8": Landscape(fail=0.8),
    "estimates off by 1.2x": Landscape(noise=0.2),
    "estimates off by 2.7x": Landscape(noise=1.0),
    "no foresight": Landscape(foresight=0.0),
    "full foresight": Landscape(foresight=1.0),
}
# Model calls at once, actions at once, programs at once for each; and evaluations: more than fit into HOURS.
SHAPES = {
    (1, 1, 1): 120,
    (4, 1, 4): 150,
    (4, *shape(4)): 220,
    (8, *shape(8)): 350,
    (16, 2, 8): 330,
    (16, *shape(16)): 380,
}
DRAWN = ((1, 1, 1), (4, 1, 4), (4, *shape(4)), (16, 2, 8), (16, *shape(16)))


def _ours(weight: int | None) -> Policy:
    def policy(task: Task, mind: Mind, evaluations: int, rng: random.Random) -> list[float]:
        return ours(task, mind, evaluations, rng, passing_weight=weight).curve

    return policy


POLICIES: dict[str, Policy] = {
    "K-Search": _ours(None),
    "greedy": greedy,
    "islands": islands,
    "best of n": best_of_n,
    "K-Search, w = 2": _ours(2),
}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean of speeds given by their logarithms, and its 95% interval over the tasks."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def curves(landscape: Landscape, name: str, seeds: int) -> list[list[float]]:
    """Log speed of the best after each evaluation, for each task; a search that ends early keeps what it has."""
    found = []
    for seed in range(seeds):
        task = make_task(landscape, seed)
        curve = POLICIES[name](task, Mind(task, seed), EVALUATIONS, random.Random(f"{name} {seed}"))
        assert len(curve) <= EVALUATIONS
        found.append([0.0, *curve, *[curve[-1]] * (EVALUATIONS - len(curve))])
    return found


def band(name: str, colour: int, xs: Sequence[float], runs: Sequence[Sequence[float]]) -> Band:
    rows = [interval(column) for column in zip(*runs, strict=True)]
    middle, low, high = (list(part) for part in zip(*rows, strict=True))
    return Band(name, colour, xs, middle, low, high)


def searches(division: tuple[int, int, int], evaluations: int, seeds: int) -> list[Found]:
    parallel, active, width = division
    found = []
    for seed in range(seeds):
        task, rng = make_task(REFERENCE, seed), random.Random(f"K-Search {seed}")
        found.append(ours(task, Mind(task, seed), evaluations, rng, parallel, active, width))
    return found


def by_hours(found: Found, grid: Sequence[float]) -> list[float]:
    """Log speed of the best at moments of simulated time."""
    values, n = [], 0
    for hour in grid:
        while n < len(found.hours) and found.hours[n] <= hour:
            n += 1
        values.append(found.curve[n - 1] if n else 0.0)
    return values


# --- the four parts -----------------------------------------------------------------------------------------------


def compare_policies(seeds: int) -> str:
    names = list(POLICIES)[:4]
    bands = [band(n, i, range(EVALUATIONS + 1), curves(REFERENCE, n, seeds)) for i, n in enumerate(names)]
    return line_chart(
        "Four policies at equal budget",
        f"Simulated: {REFERENCE}. {seeds} tasks; bands: 95% interval of the mean",
        "evaluations (programs measured)",
        "best program: speed over the baseline",
        bands,
        20,
    )


def compare_families(seeds: int) -> tuple[str, str]:
    rows, lines = [], ["| Tasks | " + " | ".join(POLICIES) + " |", "|---|" + "---|" * len(POLICIES)]
    for label, landscape in FAMILIES.items():
        ends = {name: [c[-1] for c in curves(landscape, name, seeds)] for name in POLICIES}
        values = [interval(end) for end in ends.values()]
        best = max(v[0] for v in values[:4])
        cells = [f"{v:.2f} ({low:.2f} to {high:.2f})" for v, low, high in values]
        cells = [f"**{c}**" if i < 4 and values[i][0] == best else c for i, c in enumerate(cells)]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
        rows.append(Row(label, values))
        print(f"  {label}", flush=True)
    sub = (
        f"Geometric mean after {EVALUATIONS} evaluations, {seeds} tasks a row; 95% interval; one thing differs per row"
    )
    svg = dot_chart("Where each policy does well", sub, "speed over the baseline (log scale)", list(POLICIES), rows)
    return svg, "\n".join(lines)


def compare_parallel(seeds: int) -> tuple[str, str, str]:
    grid = [HOURS * i / 100 for i in range(101)]
    by_count, by_time, lines = [], [], [SHAPES_HEAD]
    for division, evaluations in SHAPES.items():
        found = searches(division, evaluations, seeds)
        counted = [[0.0, *f.curve, *[f.curve[-1]] * EVALUATIONS][: EVALUATIONS + 1] for f in found]
        timed = [by_hours(f, grid) for f in found]
        lines.append(_shape_row(division, counted, timed, [f.hours[:EVALUATIONS][-1] for f in found]))
        if division in DRAWN:
            name = "{} call{}, {} x {}".format(division[0], "s" * (division[0] > 1), *division[1:])
            by_count.append(band(name, len(by_count), range(EVALUATIONS + 1), counted))
            by_time.append(band(name, len(by_time), grid, timed))
        print(f"  {division}", flush=True)
    sub = f"Simulated: model {MODEL_S:g} s, evaluation {EVALUATION_S:g} s, one GPU; actions x programs; {seeds} tasks"
    y_label = "best program: speed over the baseline"
    first = line_chart("What concurrency costs", sub, "evaluations (programs measured)", y_label, by_count, 20)
    second = line_chart("What concurrency brings", sub, "hours (simulated)", y_label, by_time, 0.2)
    return first, second, "\n".join(lines)


SHAPES_HEAD = (
    f"| Calls | Actions | Programs | Best after {EVALUATIONS} | Hours for {EVALUATIONS} | GPU busy "
    f"| Best after {HOURS:g} hour |\n|---|---|---|---|---|---|---|"
)


def _shape_row(division: Sequence[int], counted: list[list[float]], timed: list[list[float]], ends: list[float]) -> str:
    cells = list(map(str, division))
    for runs in (counted, timed):
        value, low, high = interval([run[-1] for run in runs])
        cells.append(f"{value:.2f} ({low:.2f} to {high:.2f})")
    hours = statistics.fmean(ends)
    cells[4:4] = [f"{hours:.2f}", f"{EVALUATIONS * EVALUATION_S / 3600 / hours:.0%}"]
    return "| " + " | ".join(cells) + " |"


def put(page: str, name: str, text: str) -> str:
    """The page with what stands between two comments replaced."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    new, count = re.subn(pattern, lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page, flags=re.DOTALL)
    assert count == 1, f"{PAGE} has no place for {name}"
    return new


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="tasks of each family (default: 200)")
    parser.add_argument("--write", action="store_true", help="write the plots and tables into docs/")
    parser.add_argument("--part", choices=PARTS, help="this part only")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("--seeds must be at least 2: an interval needs two tasks")
    for name in [given.part] if given.part else PARTS:
        print(f"{name}, {given.seeds} tasks of each family", flush=True)
        start = time.perf_counter()
        plots, table = PARTS[name](given.seeds)
        print(f"{table}\n  {time.perf_counter() - start:.0f} s", flush=True)
        if given.write:
            for plot, svg in plots.items():
                (DOCS / "images" / f"landscape-{plot}.svg").write_text(svg, encoding="utf-8")
            if table:
                PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), name, table), encoding="utf-8")


def _policies(seeds: int) -> Part:
    return {"policies": compare_policies(seeds)}, ""


def _families(seeds: int) -> Part:
    svg, table = compare_families(seeds)
    return {"families": svg}, table


def _parallel(seeds: int) -> Part:
    evaluations, hours, table = compare_parallel(seeds)
    return {"parallel-evaluations": evaluations, "parallel-hours": hours}, table


Part = tuple[dict[str, str], str]  # plots by name, a table
PARTS: dict[str, Callable[[int], Part]] = {"policies": _policies, "families": _families, "parallel": _parallel}


if __name__ == "__main__":
    main()
