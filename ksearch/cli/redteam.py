"""redteam: programs that cheat, measured by the evaluator of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch.redteam.suite import Row


def redteam(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="These cheats only.")] = None,
    proofs: Annotated[
        bool, typer.Option("--proofs/--no-proofs", help="Also run each cheat's honest twin, and the cheat undefended.")
    ] = True,
    as_json: opt.JsonOption = False,
) -> int:
    """Try to cheat the evaluator of this machine, in every way that is known, and print what became of it.

    Each cheat must be stopped; its twin, which differs in the cheat alone, must pass; and with the defence that is
    named for it switched off the cheat must succeed. Exit code 1: some row is not as it has to be.

    \b
    Examples:
      ksearch redteam
      ksearch redteam --no-proofs
      ksearch redteam cached-by-pointer patched-clock
    """
    from ksearch.cli.tables import table
    from ksearch.redteam.report import HEAD, as_dict, faults, line, state, summary
    from ksearch.redteam.suite import run_redteam

    def told(row: Row) -> None:
        if not (as_json or row.left_out):
            print(f"{state(row):<6} {row.cheat.name}", flush=True)

    rows = run_redteam(names, proofs=proofs, twins=proofs, told=told)
    tried = [row for row in rows if not row.left_out]
    right = bool(tried) and all(row.ok for row in tried)
    if as_json:
        left_out = len(rows) - len(tried)
        opt.print_json({"ok": right, "left_out": left_out, "rows": [as_dict(row) for row in rows]})
    else:
        print("\n" + table(HEAD, [line(row) for row in tried], left=len(HEAD)))
        for fault in faults(rows):
            print(fault)
        print("", *summary(rows), sep="\n")
    return 0 if right else 1
