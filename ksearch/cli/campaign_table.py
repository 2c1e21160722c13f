"""The summary of a campaign as one table."""

from __future__ import annotations

from ksearch.cli.lines import times
from ksearch.cli.tables import table
from ksearch.prompts.text import one_line
from ksearch.service.campaigns import Campaign, Line, Spent, overall

WAITING = 10  # tasks that wait are counted, not listed, when there are more


def summary(campaign: Campaign, why: str = "") -> str:
    """One row per task, and what holds over all of them."""
    lines = campaign.lines
    waiting = [line for line in lines if line.status == "waits"]
    shown = [line for line in lines if line not in waiting] if len(waiting) > WAITING else lines
    head = ["task", "state", "speedup over the baseline", "of floor", "evaluations", "cost"]
    text = table(head, [_row(line) for line in shown], left=2)
    if len(shown) < len(lines):
        text += f"\nand {len(waiting):,} tasks that wait for their turn"
    reasons = [f"{line.task}: {one_line(line.status)}" for line in shown if _word(line) != line.status]
    text = "\n".join([text, *(["", *reasons] if reasons else [])])
    return f"{text}\n\n{_over_all(campaign)}" + (f"\ncampaign {campaign.name}: {why}" if why else "")


def _row(line: Line) -> list[str]:
    floor = f"{line.of_floor:.0%}" if line.of_floor else "-"
    evaluations = str(line.evaluations) if line.run else "-"
    spent = cost(line.spent) if line.run else "-"
    return [line.task, _word(line), times(line.speedup) or "-", floor, evaluations, spent]


def _word(line: Line) -> str:
    """The state in a word; a longer reason stands under the table."""
    if line.status in ("waits", "rests"):
        return line.status
    return "paused" if line.status.startswith("paused") else "over" if line.run else "failed"


def cost(spent: Spent) -> str:
    """Money where prices are known, else tokens."""
    unknown = f" + {spent.unpriced} unpriced" if spent.unpriced else ""
    if spent.usd or not spent.tokens:
        return f"{spent.usd:.2f} USD{unknown}"
    return f"{spent.tokens:,} tokens{unknown}"


def _over_all(campaign: Campaign) -> str:
    found, lines = overall(campaign.lines), campaign.lines
    made = sum(line.evaluations for line in lines)
    spent = f"{made:,} evaluations, {cost(campaign.spent)}, {campaign.spent.seconds / 60:.1f} minutes of work"
    if not found.tried or found.geometric_mean is None:
        return f"over all: nothing was measured yet; {spent}"
    without = found.tried - found.passed
    note = f" ({without} without a passing program count as 1x)" if without else ""
    shares = f"above 1x: {found.above_1:.0%}, above 1.5x: {found.above_1_5:.0%}, above 2x: {found.above_2:.0%}"
    tried = f"{found.tried:,} of {len(lines):,} tasks tried"
    return f"over all: geometric mean {found.geometric_mean:.2f}x, {shares}; {tried}{note}\n{spent}"
