"""The story of a search, told from its exported log: `python results/story.py results/NAME/run.jsonl`.

Writes README.md (between the two marks; what stands around them is kept) and best.svg beside the log: the tree, every
attempt with what it was compared with, predictions against outcomes, best against evaluations. No figure is typed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from ksearch import events as ev
from ksearch.cli.opening import opened_run
from ksearch.history import attempts_at
from ksearch.service.beginning import log_of
from ksearch.state import Attempt, State
from ksearch.types import Evaluation, Node, Ratio
from ksearch.views import tree_heading, tree_line, walk

BEGIN, END = "<!-- from the log: begin -->", "<!-- from the log: end -->"
TEXT = 'text-anchor="middle" fill="#333333"'
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 320, 64, 20, 16, 48


def main(path: Path) -> None:
    with opened_run(None, str(path), readonly=True) as run:
        log, state = log_of(run), run.state
    points = progress(log)
    (path.parent / "best.svg").write_text(plot(points), encoding="utf-8")
    picture = "![Best against evaluations](best.svg)"
    told = "\n\n".join([headline(state, points), tree(state), picture, *nodes(log, state)])
    page = path.parent / "README.md"
    old = page.read_text(encoding="utf-8") if page.exists() else f"# {path.parent.name}\n\n{BEGIN}\n{END}\n"
    head, _, rest = old.partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n{told}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(f"{page}, {path.parent / 'best.svg'}")


def progress(log: Sequence[ev.Event]) -> list[tuple[int, float | None, float]]:
    """Of each evaluation: its number, the program's geometric mean in ms (None: did not pass), the best until then."""
    points: list[tuple[int, float | None, float]] = []
    best = math.inf
    for event in log:
        if isinstance(event, ev.Evaluated):
            ms = event.evaluation.latency_ms if event.evaluation.speedup else None
            best = min(best, ms or math.inf)
            points.append((len(points) + 1, ms, best))
    return points


def headline(state: State, points: Sequence[tuple[int, float | None, float]]) -> str:
    best = state.evaluations.get(state.best_id or "")
    if best is None or best.speedup is None or best.latency_ms is None:
        return f"{len(points)} evaluations, no program has passed."
    rows = ["| workload | ms | baseline ms | speedup | x floor |", "| --- | --- | --- | --- | --- |"]
    for w in best.workloads:
        if w.latency_ms and w.baseline_ms and w.speedup:
            floor = f"{w.latency_ms / w.floor_ms:.2f}" if w.floor_ms else ""
            times = f"{w.latency_ms:.4f} | {w.baseline_ms:.3f}"
            rows.append(f"| {w.workload} | {times} | {interval(w.speedup)} | {floor} |")
    return (
        f"Best after {len(points)} evaluations on {best.device}: geometric mean **{best.latency_ms:.3f} ms**, "
        f"{interval(best.speedup)} over the baseline (program `{best.program_id[:12]}`).\n\n" + "\n".join(rows)
    )


def tree(state: State) -> str:
    lines = [tree_heading(110), *(tree_line(state, branch, node, 110) for branch, node in walk(state.tree))]
    return "## The tree\n\n```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```"


def nodes(log: Sequence[ev.AnyEvent], state: State) -> list[str]:
    """A section per action that was tried."""
    found = []
    for _, node in walk(state.tree):
        attempts = attempts_at(log, node.id)
        if attempts:
            found.append(section(state, node, attempts))
    return found


def section(state: State, node: Node, attempts: Sequence[Attempt]) -> str:
    action = node.action
    said = f"Predicted {action.predicted_speedup:.2f}x over its parent" if action.predicted_speedup else "No prediction"
    passed = [a.judged.versus_parent for a in attempts if a.judged and a.judged.versus_parent]
    best = max(passed, key=lambda r: r.value, default=None)
    got = f"; the best attempt's gain: {interval(best)}." if best else "; nothing judged yet."
    rows = ["| attempt | program | verdict | geometric mean, ms | over the baseline | |", "| --- " * 6 + "|"]
    for number, a in enumerate(attempts, 1):
        rows.append(row(number, a, state.evaluations.get(a.program_id or "")))
    return f"### {node.id}: {action.title}\n\n{action.rationale}\n\n{said}{got}\n\n" + "\n".join(rows)


def row(number: int, a: Attempt, done: Evaluation | None) -> str:
    ms = f"{done.latency_ms:.4f}" if done and done.latency_ms else ""
    speedup = interval(done.speedup) if done and done.speedup else ""
    word = "**new best**" if a.judged and a.judged.new_best else "improved" if a.judged and a.judged.improved else ""
    if done and not done.speedup:
        word = done.reason.replace("|", "\\|")
    return f"| {number} | `{(a.program_id or '')[:12]}` | {a.verdict or 'out'} | {ms} | {speedup} | {word} |"


def interval(r: Ratio) -> str:
    return f"{r.value:.2f}x [{r.low:.2f}, {r.high:.2f}]"


def plot(points: Sequence[tuple[int, float | None, float]]) -> str:
    """Every passing program as a dot, the best until then as a line; milliseconds on a logarithmic axis."""
    times = [ms for _, ms, _ in points if ms]
    low, high = 0.9 * min(times, default=1.0), 1.1 * max(times, default=2.0)

    def at(number: float, ms: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (number - 0.5) / max(1, len(points))
        return x, TOP + (HEIGHT - TOP - BOTTOM) * math.log(high / ms) / math.log(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for ms in (v for v in (0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0) if low <= v <= high):
        y = at(1, ms)[1]
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#333333">{ms:g}</text>')
    step = max(1, len(points) // 10)
    for number in range(step, len(points) + 1, step):
        x = at(number, low)[0]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" {TEXT}>{number}</text>')
    line = [at(n, best) for n, _, best in points if best < math.inf]
    steps = "".join(f"H{b[0]:.1f}V{b[1]:.1f}" for _, b in pairwise(line))
    if line:
        start = f"M{line[0][0]:.1f} {line[0][1]:.1f}"
        parts.append(f'<path d="{start}{steps}" fill="none" stroke="#0072b2" stroke-width="2"/>')
    for number, passed_ms, _ in points:
        x, y = at(number, passed_ms or high)
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#d55e00"/>'
        failed = f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#d55e00">x</text>'
        parts.append(mark if passed_ms else failed)
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" {TEXT}>evaluations</text>')
    where = f'transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'
    parts.append(f"<text {where} {TEXT}>geometric mean, ms</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python results/story.py results/NAME/run.jsonl")
    main(Path(sys.argv[1]))
