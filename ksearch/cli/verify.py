"""verify, check-certificate: figures that others can judge and repeat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say
from ksearch.cli.tables import number, table
from ksearch.errors import BadInput, CertificateError

if TYPE_CHECKING:
    from ksearch.tasks import Task
    from ksearch.verify import Effort, Repetition, Verified

Body = Mapping[str, Any]
TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="Folder, bundled task, or a task in another format; not needed for a folder from `ksearch best`.",
    ),
]
AgainstOption = Annotated[
    list[str] | None, typer.Option("--against", metavar="PROGRAM", help="Timed beside it; may be repeated.")
]
CertificateOption = Annotated[
    str | None, typer.Option("--certificate", metavar="FILE", help="Measure what it names again, and compare.")
]


def verify(
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM...",
            show_default=False,
            help="Source file, program as JSON, folder from `ksearch best`, `baseline`, or a strong baseline's name.",
        ),
    ] = None,
    task: TaskOption = None,
    against: AgainstOption = None,
    certificate: CertificateOption = None,
    allowance: Annotated[
        float, typer.Option(min=0, max=0.9, help="With --certificate: noise added to each end of an interval.")
    ] = 0.03,
    seconds: Annotated[float, typer.Option(min=0.1, help="Timing per program, all workloads together.")] = 8.0,
    sandbox: Annotated[str, typer.Option(help="auto, or a lower rung: no_namespaces, limits.")] = "auto",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Default: TASK-PROGRAM.certificate.json in this folder."),
    ] = None,
    as_json: opt.JsonOption = False,
) -> int:
    """Measure programs so that a sceptic can judge the figures, and write them down in a certificate.

    Always fresh processes, new seeds and shapes, baseline and --against in turn with the program. Exit code 0: each
    program passed (with --certificate: and the figures agree); 1: not, and it says why.

    \b
    Examples:
      ksearch verify kernel.cpp --task gemm --against openblas -o gemm.certificate.json
      ksearch verify baseline --task softmax
      ksearch verify --certificate gemm.certificate.json
    """
    from ksearch.evaluators.options import SANDBOXES
    from ksearch.verify import Effort

    if sandbox not in SANDBOXES:
        raise BadInput(f"--sandbox must be one of {', '.join(SANDBOXES)}, got {sandbox!r}")
    effort = Effort(first_s=min(1.0, seconds), confirm_s=seconds, sandbox=sandbox)
    if certificate is not None:
        if programs or against:
            raise BadInput("with --certificate the programs are those of the certificate: name no others")
        return _again(certificate, task, effort, allowance, output, as_json)
    task = task or _origin(programs)
    if not programs or task is None:
        raise BadInput("name a program and its task: ksearch verify PROGRAM --task TASK (or --certificate FILE)")
    return _measure(programs, task, against or [], effort, output, as_json)


def _origin(programs: list[str] | None) -> str | None:
    """The task of a folder that `ksearch best` wrote."""
    from ksearch.service.best import origin_task

    return origin_task(programs[0]) if programs else None


def _measure(
    names: list[str], task_name: str, against: list[str], effort: Effort, output: str | None, as_json: bool
) -> int:
    from ksearch.programs import named_program
    from ksearch.tasks import load_task
    from ksearch.verify import verify as measure

    task = load_task(task_name)
    programs, others = ([named_program(n, task) for n in given] for given in (names, against))
    done = measure(task, programs, others, effort, say)
    path = _write(done, output)
    if as_json:
        opt.print_json({"certificate": str(path), "passed": done.passed, **_summary(done.body)})
    else:
        _print(done.body, _labels(done.body, task))
        print(f"certificate: {path}")
    return 0 if done.passed else 1


def _write(done: Verified, output: str | None) -> Path:
    body = done.body
    name = f"{body['task']['name']}-{body['results'][0]['program'][:12]}.certificate.json"
    path = Path(output) if output else Path(name)
    opt.write_output(path, done.data)
    return path


def _summary(body: Body) -> dict[str, Any]:
    """The certificate without its bulk: sources and samples."""
    results = [
        {
            **{k: v for k, v in result.items() if k not in ("seeds", "log")},
            "workloads": [{k: v for k, v in w.items() if k != "lanes"} for w in result["workloads"]],
        }
        for result in body["results"]
    ]
    return {"sha256": body["sha256"], "problems": body["problems"], "machine": body["machine"], "results": results}


def _labels(body: Body, task: Task | None) -> dict[str, str]:
    """Names for program ids: what a person calls them, where it is known."""
    labels = {id: f"{p['entry_point'].partition('::')[0]} {id[:8]}" for id, p in body["programs"].items()}
    if task is not None:
        labels |= {p.id: name for name, p in task.strong.items() if p.id in labels}
    return labels | {body["baseline"]: "baseline"}


def _print(body: Body, labels: Mapping[str, str]) -> None:
    for result in body["results"]:
        print(f"\n{labels[result['program']]} ({result['program'][:12]}): {_verdict(result)}")
        if result["speedup"]:
            print(_figures(body, result, labels))
        for flag in result["flags"]:
            print(f"note: {flag}")
        if result["sandbox_level"]:
            print(f"sandbox: {result['sandbox_level']}")
    print()
    print("PASSED" if body["passed"] else "NOT PASSED")
    for problem in body["problems"]:
        print(f"  {problem}")
    machine, tools = body["machine"], body["toolchain"]
    print(f"measured on {machine['cpu']}, load {number(machine['before']['load_1'], 3)} before", end="")
    print(f" and {number(machine['after']['load_1'], 3)} after; {tools['compiler']}")


def _verdict(result: Body) -> str:
    if result["verdict"] != "passed":
        return f"{result['verdict']} at {result['stage']}: {result['reason']}"
    shapes = len(result["unseen_shapes"])
    return f"passed, confirmed in fresh processes and on {shapes} unseen shapes" if result["confirmed"] else "passed"


def _figures(body: Body, result: Body, labels: Mapping[str, str]) -> str:
    others = sorted(result["against"])
    head = ["workload", "ms", "baseline ms", "x baseline", *(f"x {labels[id]}" for id in others)]
    head += ["floor", "max abs err", "max rel err", "pairs"]
    rows = []
    for w in result["workloads"]:
        against = [_ratio(w["against"].get(id)) for id in others]
        floor = "-" if not w["floor_share"] else f"{w['floor_share']:.0%}"
        errors = [number(w["max_abs_error"], 2), number(w["max_rel_error"], 2)]
        pairs = str(len(w["lanes"][0]["turns"]))
        rows.append([w["name"], number(w["median_ms"]), number(w["baseline_ms"]), _ratio(w["speedup"]), *against])
        rows[-1] += [floor, *errors, pairs]
    total = [f"{body['task']['mean']} mean", number(result["latency_ms"]), "", _ratio(result["speedup"])]
    rows.append([*total, *(_ratio(result["against"][id]) for id in others), "", "", "", ""])
    return table(head, rows)


def _ratio(ratio: Body | None) -> str:
    return "-" if not ratio else f"{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"


# --- certificates ----------------------------------------------------------------------------------------------------


def check_certificate(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    as_json: opt.JsonOption = False,
) -> int:
    """Check that a certificate is whole and consistent; nothing is measured. Exit code 1: it is refused.

    \b
    Example:
      ksearch check-certificate gemm.certificate.json
    """
    from ksearch.certificate import LIMITS, check

    data = opt.read_input(file)
    try:
        body = check(data, file)
    except CertificateError as error:
        if as_json:
            opt.print_json({"ok": False, "reason": str(error)})
        else:
            print(f"REFUSED: {error}")
        return 1
    if as_json:
        opt.print_json({"ok": True, "passed": body["passed"], "limits": LIMITS, **_summary(body)})
        return 0
    _print(body, _labels(body, None))
    print(f"\nWHOLE AND CONSISTENT: {file}, {body['date']}, task {body['task']['name']}")
    print(LIMITS)
    return 0


def _again(
    file: str, task_name: str | None, effort: Effort, allowance: float, output: str | None, as_json: bool
) -> int:
    from ksearch.certificate import check
    from ksearch.tasks import load_task
    from ksearch.verify import check_task, repeat

    old = check(opt.read_input(file), file)
    task = load_task(task_name or old["task"]["name"])
    check_task(old, task)
    done = repeat(old, task, effort, allowance, say)
    path = _write(done.certificate, output) if output else None
    if as_json:
        from dataclasses import asdict

        rows = [asdict(row) for row in done.rows]
        body = {"agrees": done.agrees, "same_cpu": done.same_cpu, "allowance": allowance, "faults": list(done.faults)}
        opt.print_json({**body, "certificate": str(path) if path else None, "rows": rows})
    else:
        _print_repetition(old, done, allowance, _labels(old, task))
        if path:
            print(f"new certificate: {path}")
    return 0 if done.agrees else 1


def _print_repetition(old: Body, done: Repetition, allowance: float, labels: Mapping[str, str]) -> None:
    head = ["program", "workload", "over", "then", "now", "agrees"] + (["then ms", "now ms"] if done.same_cpu else [])
    rows = []
    for row in done.rows:
        times = [number(row.then_ms), number(row.now_ms)] if done.same_cpu else []
        cells = [labels[row.program], row.label, labels[row.other], _ratio(row.then), _ratio(row.now)]
        rows.append([*cells, "yes" if row.agrees else "NO", *times])
    print(table(head, rows, left=3))
    now, was = done.certificate.body["machine"]["cpu"], old["machine"]["cpu"]
    if not done.same_cpu:
        print(f"note: measured then on {was}, now on {now}: ratios may differ, and times are not compared")
    for fault in done.faults:
        print(f"DIFFERS: {fault}")
    print(f"intervals widened by {allowance:.0%} at each end: {'AGREES' if done.agrees else 'DOES NOT AGREE'}")
