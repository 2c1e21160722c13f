from __future__ import annotations

import re
from dataclasses import replace

from ksearch.prompts import Limit, PromptView, render_write
from ksearch.prompts.trajectory import furthest, table
from ksearch.protocol import Kind
from ksearch.types import Evaluation, Insert, Ratio, Verdict
from tests.prompts.scripted import Run, passed, vectorise

LIMITS = {"small": Limit("memory", 0.011, 403456, 201728), "large": Limit("arithmetic", 2.1, 4e7, 2e7)}


def started() -> Run:
    run = Run()
    run.plan(Insert("root", vectorise(), 0.9))
    return run


def view_of(run: Run) -> PromptView:
    return run.view(Kind.WRITE, limits=LIMITS)


def slowed(done: Evaluation, factor: float) -> Evaluation:
    """The same program as measured on a machine that is busy for a while."""
    results = [
        replace(w, latency_ms=(w.latency_ms or 0) * factor, baseline_ms=(w.baseline_ms or 0) * factor)
        for w in done.workloads
    ]
    return replace(done, workloads=tuple(results))


def test_a_table_says_which_term_sets_the_floor_and_which_rates_are_reached() -> None:
    shown = table(view_of(started()), passed("p1", 2.0, {}), {})
    assert "| workload | ms | baseline ms | speedup | GB/s | GFLOP/s | x floor |" in shown
    assert "| small | 0.105 | 0.21 | 2.00x | 3.84 | 1.92 | 9.55x (memory) |" in shown
    assert "| large | 10.5 | 21 | 2.00x | 3.81 | 1.9 | 5.00x (arithmetic) |" in shown


def test_a_workload_whose_rounds_disagree_is_called_noisy() -> None:
    done = passed("p1", 2.0, {})
    first = replace(done.workloads[0], speedup=Ratio(6.6, 3.1, 9.2))
    shown = table(view_of(started()), replace(done, workloads=(first, *done.workloads[1:])), {})
    assert "| 6.60x noisy [3.1, 9.2] |" in shown
    assert shown.count("noisy") == 1


def test_a_disturbed_machine_is_named_by_the_baselines_own_time() -> None:
    run = started()
    for i in range(3):
        run.write(f"try {i}", 2.0 + i)
    view = view_of(run)
    quiet, busy = passed("p1", 2.0, {}), slowed(passed("p1", 2.0, {}), 3.8)
    assert "disturbed" not in table(view, quiet, {})
    assert "the baseline took longer than usual (small 3.8x, large 3.8x)" in table(view, busy, {})


def test_after_an_improvement_the_writer_reads_what_binds() -> None:
    run = started()
    run.write("good", 2.0)
    text = render_write(view_of(run)).text
    wanted = "Furthest from its floor: small, 9.55x: memory sets that floor, and 3.84 of 36.7 GB/s are reached."
    assert f"The last attempt improved. {wanted}" in text
    assert furthest(run.view(Kind.WRITE), passed("p1", 2.0, {})) == "Furthest from its floor: small, 9.55x."


def test_the_bases_table_stands_once() -> None:
    run = started()
    run.write("good", 2.0)
    text = render_write(view_of(run)).text
    assert text.count("| large | 10.5 |") == 1


def test_times_that_do_not_hold_together_are_no_verdict_on_the_idea() -> None:
    run = started()
    run.write("late", (Verdict.FORGED, "calls take longer by the outside clock", ""))
    assert "the idea is not disproved" in render_write(view_of(run)).text


def test_the_first_that_passed_is_not_called_an_improvement() -> None:
    run = started()
    run.write("first", 0.9)
    text = render_write(view_of(run)).text
    assert re.search(r"- attempt 1: passed, .*, the first that passed, slower than the parent", text)
    assert "an improvement" not in text.replace("no improvement", "")
