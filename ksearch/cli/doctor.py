"""doctor: is this machine fit to search and to measure?"""

from __future__ import annotations

from typing import Annotated

import typer

from ksearch.cli import options as opt


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Without the evaluation of a small task.")] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="A GPU is needed: what is missing for measuring on one fails.")
    ] = False,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Look at this machine: compiler, clocks, sandbox, store, models, GPUs. Each line that is not ok says what to do.

    Exit code 1: something fails that evaluation needs.

    \b
    Examples:
      ksearch doctor
      ksearch doctor --gpu
      ksearch doctor --quick --json
    """
    from ksearch.cli.opening import store_place
    from ksearch.doctor import Health, can_evaluate, examine

    lines = []
    for line in examine(store_place(store), quick=quick, gpu_wanted=gpu):
        lines.append(line)
        if not as_json:
            print(f"{line.health:<5} {line.name}: {line.detail}", flush=True)
            if line.cure:
                print(f"      cure: {line.cure}", flush=True)
    fit = can_evaluate(lines)
    if as_json:
        rows = [
            {"name": n.name, "health": str(n.health), "detail": n.detail, "cure": n.cure, "needed": n.needed}
            for n in lines
        ]
        opt.print_json({"ok": fit, "lines": rows})
    else:
        counts = {health: sum(line.health is health for line in lines) for health in Health}
        told = ", ".join(f"{count} {health}" for health, count in counts.items())
        print(f"{told}: evaluation {'works' if fit else 'DOES NOT WORK'} here")
    return 0 if fit else 1
