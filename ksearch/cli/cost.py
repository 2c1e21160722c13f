"""cost: what a run has spent, on what, and what its gains have cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksearch.costs import Action, Bill, Costs

Row = list[str]


def cost(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest unfinished run."),
    ] = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """What a run has spent on model calls: by role, model and action, and for each doubling of speed.

    A call without a reply counts as what was set aside for it, and so does a reply of unknown price. Where no price is
    known, gains are told in tokens. "cached": the part of the prompts that providers read from their caches.

    \b
    Examples:
      ksearch cost
      ksearch cost softmax-1 --json
      ksearch cost results/softmax/run.jsonl
    """
    from ksearch.cli.opening import opened_run
    from ksearch.costs import costs
    from ksearch.service.beginning import log_of

    with opened_run(store, run, readonly=True) as found:
        told = costs(log_of(found))
        if as_json:
            opt.print_json({"run": found.id, **costs_json(told)})
        else:
            print(f"run     {found.id}\n{text(told)}")


# --- for scripts ---------------------------------------------------------------------------------------------------


def costs_json(told: Costs) -> dict[str, Any]:
    """Strict JSON values. `per_doubling_usd` None: no price is known, or nothing was gained."""
    budget = told.state.config.budget
    actions = [
        {
            "node_id": id,
            "title": action.node.action.title,
            "status": str(action.node.status),
            "evaluations": action.evaluations,
            "gain": action.gain.value if action.gain else None,
            **_bill_json(action.bill, action.per_doubling),
        }
        for id, action in told.actions.items()
    ]
    return {
        "total": _bill_json(told.total, told.per_doubling),
        "limits": {"usd": budget.usd, "tokens": budget.tokens},
        "speedup": told.speedup.value if told.speedup else None,
        "roles": {name: _bill_json(bill, None) for name, bill in told.roles.items()},
        "models": {name: _bill_json(bill, bill.per_doubling()) for name, bill in told.models.items()},
        "writers": {name: _bill_json(bill, bill.per_doubling()) for name, bill in told.writers.items()},
        "actions": actions,
    }


def _bill_json(bill: Bill, per_doubling: float | None) -> dict[str, Any]:
    return {
        "replies": bill.replies,
        "calls_without_reply": bill.unanswered,
        "tokens": bill.tokens,
        "usd": bill.usd if bill.priced else None,
        "replies_of_unknown_price": bill.unpriced,
        "tokens_in": bill.tokens_in,
        "tokens_out": bill.tokens_out,
        "tokens_cached": bill.tokens_cached,
        "cached_share": bill.cached_share,
        "attempts_judged": bill.judged,
        "gains": bill.gains,
        "gain": math.exp(bill.log_gain),
        "per_doubling_usd": per_doubling if bill.priced else None,
        "per_doubling_tokens": None if bill.priced else per_doubling,
    }


# --- for people ----------------------------------------------------------------------------------------------------


def text(told: Costs) -> str:
    """Sums, then a table each by role, model, writer (where there are several) and action."""
    if not told.total.replies and not told.total.unanswered:
        return "spent   nothing: no model has been called, and nobody has told what an answer cost"
    tables = [_by_role(told), _by_model("model", told.models)]
    tables += [_by_model("writer", told.writers)] if told.writers else []
    tables += [_by_action(told)] if told.actions else []
    return "\n\n".join(["\n".join(_summary(told)), *tables])


def _summary(told: Costs) -> list[str]:
    total, budget = told.total, told.state.config.budget
    of_usd = f" of {budget.usd:.2f}" if budget.usd is not None else ""
    of_tokens = f" of {budget.tokens:,}" if budget.tokens is not None else ""
    usd = (
        f"{total.usd:.4g}{of_usd} USD" if total.priced else f"an unknown amount of money{of_usd and ', limit'}{of_usd}"
    )
    lines = [f"spent   {usd}, {total.tokens:,}{of_tokens} tokens, {_replies(total.replies)}"]
    if total.unanswered:
        calls = f"{total.unanswered:,} call{'s' * (total.unanswered != 1)} without a reply"
        lines.append(f"        {calls}: what was set aside counts as spent")
    if not total.priced:
        lines.append("        No price is known, so all is told in tokens. `prices` in the settings states one.")
    elif total.unpriced:
        lines.append(f"        {_replies(total.unpriced)} of unknown price: what was set aside counts")
    share = total.cached_share
    told_by = f"{total.reporting:,} of {total.replies:,} replies tell"
    lines.append(f"cached  {_percent(share)} of the prompts' tokens ({told_by})" if share is not None else _no_cache())
    best = told.speedup
    each = f": {_amount(total, told.per_doubling)} for each doubling" if told.per_doubling else ""
    lines.append(
        f"gain    {best.value:.2f}x over the baseline{each}" if best else "gain    none yet: no program has passed"
    )
    return lines


def _replies(count: int) -> str:
    return f"{count:,} {'reply' if count == 1 else 'replies'}"


def _no_cache() -> str:
    return "cached  unknown: no reply tells what was read from a cache"


def _by_role(told: Costs) -> str:
    from ksearch.cli.tables import table

    rows = [[name, *_counts(bill)] for name, bill in [*told.roles.items(), ("all", told.total)]]
    return table(["role", *_COUNTS], rows)


def _by_model(head: str, bills: dict[str, Bill]) -> str:
    from ksearch.cli.tables import table
    from ksearch.prompts.text import one_line

    rows = [
        [one_line(name, 60), *_counts(b), *_brought(b), _amount(b, b.per_doubling())]
        for name, b in sorted(bills.items(), key=lambda item: -item[1].tokens)
    ]
    return table([head, *_COUNTS, "judged", "gains", "gain", "each 2x"], rows)


def _by_action(told: Costs) -> str:
    from ksearch.cli.tables import table
    from ksearch.prompts.text import one_line

    rows = [
        [f"{id} {one_line(a.node.action.title, 40)}", str(a.evaluations), *_counts(a.bill), _gain(a), _each(a)]
        for id, a in told.actions.items()
    ]
    return table(["action (its programs)", "measured", *_COUNTS, "gain", "each 2x"], rows)


_COUNTS = ("replies", "lost", "tokens", "in", "out", "cached", "USD")


def _counts(bill: Bill) -> Row:
    known = bool(bill.tokens_in or bill.tokens_out)
    usd = "?" if not bill.priced else f"{bill.usd:.4g}{'+?' if bill.unpriced else ''}"
    parts = (f"{bill.tokens_in:,}", f"{bill.tokens_out:,}") if known else ("-", "-")
    return [f"{bill.replies:,}", f"{bill.unanswered:,}", f"{bill.tokens:,}", *parts, _percent(bill.cached_share), usd]


def _brought(bill: Bill) -> Sequence[str]:
    return (f"{bill.judged}", f"{bill.gains}", f"{math.exp(bill.log_gain):.2f}x") if bill.judged else ("-", "-", "-")


def _gain(action: Action) -> str:
    return f"{action.gain.value:.2f}x" if action.gain else "-"


def _each(action: Action) -> str:
    return _amount(action.bill, action.per_doubling)


def _amount(bill: Bill, amount: float | None) -> str:
    if amount is None:
        return "-"
    return f"{amount:.3g} USD" if bill.priced else f"{amount:,.0f} tokens"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"
