"""`ksearch portfolio` on runs whose measurements were told; nothing is measured here but what is marked heavy."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ksearch.fold import fold
from ksearch.holders import this_process
from ksearch.portfolio import make_portfolio
from ksearch.portfolio.rule import Split
from ksearch.protocol import Kind, Request
from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.tasks import load_task
from ksearch.types import Evaluation, NodeStatus, Origin, Program, Verdict
from tests.cli.shell import Shell, shell_in
from tests.portfolio.history import measured
from tests.portfolio.lopsided import TASK, narrow, wide

TIMED = [w.name for w in load_task(TASK).spec.workloads if w.timed]
LARGE = ("vocabulary_32000", "large")
EVEN = dict.fromkeys(TIMED, 4.0)
SMALL_ONLY = {name: 1.0 if name in LARGE else 4.0 for name in TIMED}
LARGE_ONLY = {name: 4.0 if name in LARGE else 1.0 for name in TIMED}
RECORDED = Path(__file__).parents[2] / "results" / "trimul-h200" / "run.jsonl"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


def store_of(shell: Shell) -> Store:
    return open_store(str(shell.folder / "runs.db"))


def begun(shell: Shell, evaluations: int = 5, **programs: tuple[str, Mapping[str, float] | None]) -> None:
    """A run `s` in which these programs were submitted; `speedups` None: it did not pass."""
    shell("new", "--name", "s", "--task", TASK, "--evaluations", str(evaluations))
    with store_of(shell) as store:
        run = Run(store, "s")
        for text, speedups in programs.values():
            told(run, Program({"kernel.cpp": text}, "kernel.cpp::run", "cpp"), speedups)


def told(run: Run, program: Program, speedups: Mapping[str, float] | None) -> None:
    run.submit(program, "eve")
    holder = this_process("test")
    request = run.take(holder, frozenset({Kind.EVALUATE}))
    assert isinstance(request, Request)
    done = measured(program.id, speedups) if speedups else Evaluation(program.id, Verdict.HANG)
    run.tell(request.id, done, holder)


def lopsided(shell: Shell, evaluations: int = 5) -> None:
    begun(shell, evaluations, narrow=(narrow(), SMALL_ONLY), wide=(wide(), LARGE_ONLY))


def test_a_dry_run_says_what_it_would_be_and_changes_nothing(shell: Shell) -> None:
    lopsided(shell)
    before = shell("show", "s", "--events")
    found = shell.json("portfolio", "s", "--dry-run")
    programs = {row["workload"]: row["program"] for row in found["workloads"]}
    assert {programs[name] for name in LARGE} & {programs[n] for n in TIMED if n not in LARGE} == set()
    assert found["predicted"]["value"] == pytest.approx(4 ** (2 / 5))
    assert found["predicted"]["low"] > 1.5
    out = shell("portfolio", "s", "--dry-run")
    assert "predicted: 1.74x" in out
    assert "rows 16, cols 32000" in out
    assert shell("show", "s", "--events") == before


def test_the_program_is_written_as_a_folder_that_other_commands_take(shell: Shell) -> None:
    lopsided(shell)
    out, err = shell.both("portfolio", "s", "-o", "made")
    assert "ksearch verify made" in err
    assert "if (cols <= 1600) {" in (shell.folder / "made" / "dispatch.cpp").read_text()
    assert json.loads((shell.folder / "made" / "origin.json").read_text())["task"] == TASK
    assert "portfolio" in out
    shell("export-kernel", "made", "--to", "gpu-mode", "-o", "exported")
    assert "not empty" in shell.both("portfolio", "s", "-o", "made", code=2)[1]
    assert shell.json("status", "s")["evaluations"] == 2


def test_it_is_submitted_under_the_runs_best_and_left_for_another_machine(shell: Shell) -> None:
    lopsided(shell)
    found = shell.json("portfolio", "s", "--elsewhere")
    assert found["outcome"] == "waiting"
    with store_of(shell) as store:
        run = Run(store, "s")
        node = run.state.tree["n3"]
        assert (node.origin, node.parent_id, node.status) == (Origin.PORTFOLIO, "n1", NodeStatus.ACTIVE)
        assert run.state.tree["n1"].program_id == run.state.best_id
        assert fold(run.log()) == run.state
    assert "dispatches to" in shell("show", "s", "n3")
    assert "ksearch bundle s" in shell("portfolio", "s", "--elsewhere")  # asked again: it is there already
    assert shell.json("status", "s")["attempts"] == 3


def answered(shell: Shell, found: Mapping[str, object], done: Evaluation) -> None:
    """The measurement comes from another machine."""
    with store_of(shell) as store:
        run = Run(store, "s")
        request = run.take(holder := this_process("test"), frozenset({Kind.EVALUATE}))
        assert isinstance(request, Request)
        assert (request.program_id, request.against) == (found["program"], (found["best"],))
        run.tell(request.id, done, holder)


def test_it_is_kept_when_the_interval_says_that_it_wins(shell: Shell) -> None:
    lopsided(shell)
    found = shell.json("portfolio", "s", "--elsewhere")
    answered(shell, found, measured(found["program"], EVEN, {found["best"]: {n: 4 / SMALL_ONLY[n] for n in TIMED}}))
    assert shell.json("portfolio", "s")["outcome"] == "kept"
    said = shell("portfolio", "s")
    assert "is this portfolio of 2 programs already" in said
    assert "It is the best of run s now" in said
    assert shell.json("status", "s")["best"] == found["program"]


def test_it_is_not_kept_when_the_interval_holds_1_and_the_best_stays(shell: Shell) -> None:
    lopsided(shell)
    found = shell.json("portfolio", "s", "--elsewhere")
    same = dict.fromkeys(TIMED, 1.005)
    answered(shell, found, measured(found["program"], SMALL_ONLY, {found["best"]: same}))
    assert "not kept: 1.00x (0.99 to 1.02)" in shell("portfolio", "s", code=1)
    assert shell.json("status", "s")["best"] == found["best"]


def test_it_is_not_kept_when_it_does_not_pass(shell: Shell) -> None:
    lopsided(shell)
    found = shell.json("portfolio", "s", "--elsewhere")
    answered(shell, found, Evaluation(found["program"], Verdict.COMPILE_ERROR, "no such name"))
    assert "not kept: compile_error: no such name. The run's best stays" in shell("portfolio", "s", code=1)


def test_a_run_without_a_passing_program_has_nothing_to_combine(shell: Shell) -> None:
    begun(shell)
    assert "no program of the run has passed yet" in shell("portfolio", "s", "--dry-run", code=1)
    with store_of(shell) as store:
        told(Run(store, "s"), Program({"kernel.cpp": "hangs"}, "kernel.cpp::run", "cpp"), None)
    assert shell.json("portfolio", "s", code=1)["outcome"] == "nothing_to_combine"


def test_one_program_best_everywhere_is_said_and_nothing_is_submitted(shell: Shell) -> None:
    begun(shell, both=(narrow(), EVEN), wide=(wide(), LARGE_ONLY))
    assert "is best everywhere" in shell("portfolio", "s", code=1)
    assert shell.json("status", "s")["attempts"] == 2


def test_a_budget_that_is_spent_is_said_with_the_cure(shell: Shell) -> None:
    lopsided(shell, evaluations=2)
    shell("portfolio", "s", "--dry-run")
    out, err = shell.both("portfolio", "s", code=4)
    assert "budget: evaluations: raise it with `ksearch command RUN budget`" in err
    assert "predicted" in out


def test_named_programs_are_the_only_ones_chosen_from(shell: Shell) -> None:
    begun(shell, both=(narrow(), EVEN), wide=(wide(), LARGE_ONLY), narrow=(narrow() + "//", SMALL_ONLY))
    with store_of(shell) as store:
        _, wide_id, narrow_id = Run(store, "s").state.evaluations
    chosen = shell.json("portfolio", "s", "--dry-run", "--program", wide_id[:8], "--program", narrow_id[:8])
    assert set(chosen["members"]) == {wide_id, narrow_id}
    assert "no measured program" in shell.fails("portfolio", "s", "--dry-run", "--program", "zzz", code=2)


def test_programs_of_another_language_are_named_where_they_would_have_helped(shell: Shell) -> None:
    begun(shell, narrow=(narrow(), SMALL_ONLY))
    text = "import numpy\ndef run(x):\n    return x\n"
    other = Program({"kernel.py": text}, "kernel.py::run", "python")
    with store_of(shell) as store:
        run = Run(store, "s")
        told(run, other, LARGE_ONLY)
        first = next(iter(run.state.evaluations))
    said = shell("portfolio", "s", "--dry-run", code=1)
    assert "only program to choose from" in said
    assert f"program {other.id[:12]} in Python is faster on vocabulary_32000, large" in said
    named = ("--program", first[:8], "--program", other.id[:8])
    assert "C++ and Python cannot become one program" in shell.fails("portfolio", "s", "--dry-run", *named, code=4)


def test_a_file_is_looked_at_and_not_changed(shell: Shell) -> None:
    lopsided(shell)
    shell("export", "s", "-o", "s.jsonl")
    assert shell.json("portfolio", "s.jsonl", "--dry-run")["predicted"]["value"] > 1.5
    assert "ksearch import" in shell.fails("portfolio", "s.jsonl", code=2)


def test_the_recorded_search_for_trimul_has_one_program_that_is_best_everywhere(shell: Shell) -> None:
    said = shell("portfolio", str(RECORDED), "--dry-run", code=1)
    assert "8de2e82ae5e1 is best everywhere, also against a7eac657adef" in said


def test_at_an_earlier_point_of_that_search_two_programs_would_have_been_one(shell: Shell) -> None:
    """Before `a7eac657`, which was then measured at 1.079x over `7beeabc9`, and gains for the same sizes."""
    with open_store(str(RECORDED), readonly=True) as store:
        run = Run(store, store.runs()[0].id)
        known = {id[:8]: id for id in run.state.evaluations}
        before = dict(list(run.state.evaluations.items())[: list(known).index("a7eac657")])
        made = make_portfolio(before, known["7beeabc9"], run.program, load_task("trimul_gpu").spec)
    assert [id[:8] for id in made.members] == ["7beeabc9", "aa50d3bc"]
    assert (round(made.predicted.value, 3), round(made.predicted.low, 3)) == (1.074, 1.07)
    assert isinstance(made.rule, Split)
    assert (made.rule.feature, made.rule.limit) == (("c",), 221)
    assert {row.workload for row in made.rows if not row.same} == {r.workload for r in made.rows if r.axes["c"] == 384}
    ast.parse(made.program.sources["dispatch.py"])
    assert "allow_tf32" in made.notes[0]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_two_lopsided_programs_measured_here_win_together(shell: Shell) -> None:
    lopsided(shell)
    out, err = shell.both("portfolio", "s")
    assert "measuring it here" in err
    assert "kept: " in out
    found = shell.json("portfolio", "s")
    assert found["outcome"] == "kept"
    assert found["over"]["low"] > 1
    assert shell.json("status", "s")["best"] == found["program"]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_history_that_promised_too_much_is_not_kept(shell: Shell) -> None:
    """The recorded times have it the wrong way round: measured, the portfolio is slow everywhere."""
    begun(shell, narrow=(narrow(), LARGE_ONLY), wide=(wide(), SMALL_ONLY))
    best = shell.json("status", "s")["best"]
    assert "not kept: 0." in shell("portfolio", "s", code=1)
    assert shell.json("status", "s")["best"] == best
