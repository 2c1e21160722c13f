"""demo and replay: a recorded search, measured again on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from ksearch.run import Run
    from ksearch.service.replaying import Measurement
    from ksearch.tasks import Task
    from ksearch.types import Evaluation

SECONDS_EACH = 0.7  # of timing: a demo is to be over before its viewer's patience


def demo(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A recorded search: gemm, softmax, laptop.")] = "gemm",
    store: opt.StoreOption = None,
) -> None:
    """Watch a recorded search and measure it on this machine: no key, no GPU.

    The replies of the model are recorded; building, checking and timing happen now.

    \b
    Examples:
      ksearch demo
      ksearch demo softmax
      ksearch demo laptop      # by a model of 1.5 billion parameters on two cores
    """
    from ksearch.cli.opening import opened
    from ksearch.errors import UnknownRun
    from ksearch.run import Run
    from ksearch.service.replaying import demo_file
    from ksearch.store import import_run

    path = demo_file(name)
    with opened(store) as kept:
        try:
            run = Run(kept, f"{name}-demo")
        except UnknownRun:
            run = Run(kept, import_run(kept, path).id)
        print(f"A search recorded with the bundled task {run.state.context['task']}: the model's replies are recorded,")
        print("building, checking and timing happen on this machine, now.\n")
        _replay(run)
        print(f"\nSee it in a browser: ksearch ui {run.id}")
        print(f"Look closer: ksearch show {run.id}; ksearch show {run.id} n1; ksearch best {run.id} -o best/")


def replay(
    run_id: opt.RunArgument = None,
    store: opt.StoreOption = None,
) -> None:
    """Measure every program of a run again on this machine, beside the recorded numbers. Records nothing.

    \b
    Examples:
      ksearch replay softmax-1
      ksearch replay results/run.jsonl
    """
    from ksearch.cli.opening import opened_run

    with opened_run(store, run_id, readonly=True) as run:
        _replay(run)


def _replay(run: Run) -> None:
    from ksearch.cli.lines import times
    from ksearch.evaluators.local import LocalEvaluator
    from ksearch.evaluators.options import EvaluatorOptions
    from ksearch.service.measuring import Bench
    from ksearch.service.replaying import measure_again, with_fresh_numbers
    from ksearch.views import tree_text

    task, events = _task(run), run.log()
    options = EvaluatorOptions(time_budget_s=SECONDS_EACH, confirm=False)
    fresh = []
    with LocalEvaluator(task.spec, task.folder, options=options) as local:
        for found in measure_again(run, events, Bench(local)):
            fresh.append(found.fresh)
            print(_line(found), flush=True)
    state = with_fresh_numbers(events, fresh)
    print(f"\nThe tree as it was decided then, with the numbers of now:\n\n{tree_text(state)}")
    best = state.evaluations.get(state.best_id or "")
    if best and best.speedup:
        print(f"\nBest program: {times(best.speedup)} the speed of the baseline on this machine, 95% interval.")
    elif best:
        print(f"\nThe best program of then fails here: {best.verdict}: {best.reason}")


def _task(run: Run) -> Task:
    from ksearch.cli.boundary import say
    from ksearch.errors import BadInput
    from ksearch.tasks import load_task

    context = run.state.context
    if not (name := context.get("task")):
        raise BadInput(f"run {run.id} has no task: its programs cannot be measured")
    task = load_task(context.get("task_folder") or name)
    if task.hash != context.get("task_hash"):
        say(f"note: task {name} has changed since this run was recorded; old and new numbers may differ for that")
    return task


def _line(found: Measurement) -> str:
    from ksearch.prompts.text import one_line

    then, now = _short(found.recorded), _short(found.fresh)
    changed = "" if found.agrees else "  (differs: the new verdict counts)"
    title = one_line(found.node.action.title)
    return f"[{found.number:2}/{found.count}] {found.node.id:>4} {title[:34]:34} then {then:>14}  now {now}{changed}"


def _short(done: Evaluation) -> str:
    if done.speedup is None:
        return str(done.verdict)
    return f"{done.speedup.value:.2f}x"
