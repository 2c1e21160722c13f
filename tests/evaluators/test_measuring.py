"""Speed, comparison, confirmation and the record of real programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ksearch.definition import Workload
from ksearch.errors import EvaluatorError
from ksearch.evaluators import record
from ksearch.evaluators.bounding import ROUNDS_IN_DOUBT
from ksearch.evaluators.lease import timing_lease
from ksearch.evaluators.local import LocalEvaluator, Measured
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.timing import FEW_ROUNDS, MAX_SETS
from ksearch.protocol import Lost
from ksearch.tasks import bundled_tasks, load_task
from ksearch.tasks.folder import BUNDLED
from ksearch.types import Evaluation, Program, Verdict

SLOW = 'for (int k = 0; k < 6; k++) { {GOOD} for (int64_t q = 0; q < 3; q++) asm volatile("" ::: "memory"); }'
Make = Callable[..., LocalEvaluator]
Cpp = Callable[..., Program]


def result(measured: Measured) -> Evaluation:
    assert isinstance(measured.evaluation, Evaluation), measured.evaluation
    return measured.evaluation


def test_a_faster_program_is_measured_as_faster_and_confirmed(make: Make, cpp: Cpp) -> None:
    options = {"confirm": True, "confirm_all": True, "confirm_budget_s": 0.3, "outside_batch_ms": 10.0}
    with make(baseline=cpp(SLOW), options=options) as one:
        measured = one.evaluate(cpp("{FAST}"))
    found = result(measured)
    assert found.verdict is Verdict.PASSED, found.reason
    assert found.stage == "confirm"
    assert found.confirmed
    assert found.speedup is not None
    assert found.speedup.value > 2
    by_name = {w.workload: w for w in found.workloads}
    assert by_name["mid"].speedup is not None
    assert by_name["mid"].speedup.value > 2
    assert by_name["mid"].floor_ms is not None
    assert by_name["mid"].floor_ms < by_name["mid"].latency_ms  # type: ignore[operator]
    assert len(measured.record["timing"]) == 2  # the first timing and the confirmation's
    assert len(measured.record["confirm"]["unseen"]) == 2


def test_incumbents_are_timed_beside_it_and_survive_to_the_next(make: Make, cpp: Cpp) -> None:
    fast, slow = cpp("{FAST}"), cpp(SLOW)
    with make() as one:
        found = result(one.evaluate(fast, against=[slow, one.spec.baseline]))
        assert set(found.against) == {slow.id, one.spec.baseline.id}
        assert found.against[slow.id].value > found.against[one.spec.baseline.id].value
        subject = one._incumbents[slow.id]
        again = result(one.evaluate(cpp("{GOOD}", "// 2"), against=[slow]))
        assert one._incumbents[slow.id] is subject
        assert again.against[slow.id].faster
        result(one.evaluate(cpp("{GOOD}", "// 3")))
        assert one._incumbents == {}


def test_a_program_that_is_surely_slower_costs_few_rounds(make: Make, cpp: Cpp) -> None:
    options = {"min_rounds": 40, "time_budget_s": 20.0, "time_cap_s": 20.0, "screen_ratio": 1e-3}
    with make(options=options) as one:
        measured = one.evaluate(cpp(SLOW), against=[cpp("{FAST}")])
    assert result(measured).stage == "time"
    tracks = measured.record["timing"][0]["workloads"].values()
    assert all(track["rounds"] <= FEW_ROUNDS + ROUNDS_IN_DOUBT for track in tracks)


def test_a_hopeless_program_is_stopped_at_the_screen(make: Make, cpp: Cpp) -> None:
    with make(workloads=(Workload("mid", {"m": 128, "n": 512}),)) as one:
        hopeless = cpp('for (int k = 0; k < 40; k++) { {GOOD} asm volatile("" ::: "memory"); }')
        found = result(one.evaluate(hopeless, against=[cpp("{FAST}")]))
    assert found.verdict is Verdict.PASSED
    assert found.stage == "screen"
    assert any("screened" in flag for flag in found.flags)


def test_a_program_whose_calls_take_far_too_long_is_out_after_two_of_each(make: Make, cpp: Cpp) -> None:
    best, wait = cpp("{FAST}"), "for (volatile int64_t k = 0; k < 100000000; k = k + 1) {}"
    workloads = tuple(Workload(name, {"m": m, "n": 512}) for name, m in (("small", 16), ("mid", 128)))
    with make(workloads=workloads) as one:
        first = result(one.evaluate(cpp(f"{wait} {{GOOD}}", "// nothing is known of the rival yet"), against=[best]))
        assert first.verdict is Verdict.PASSED, first.reason
        measured = one.evaluate(cpp(f"{wait} {{GOOD}}"), against=[best])
        found = result(measured)
        assert (found.verdict, found.stage) == (Verdict.TIMEOUT, "check")
        assert "hopeless: a call takes" in found.reason
        assert measured.record["timing"] == []
        wrong = result(one.evaluate(cpp(f"{wait} {{GOOD}} y[0] += 1;"), against=[best]))
        assert wrong.verdict is Verdict.WRONG_VALUES
        # Far too slow at one size only: right, and perhaps the best at another.
        mixed = result(one.evaluate(cpp(f"if (m > 20) {wait} {{GOOD}}"), against=[best]))
        assert mixed.verdict is Verdict.PASSED, mixed.reason


def test_an_incumbent_that_breaks_does_not_harm_the_candidate(make: Make, cpp: Cpp) -> None:
    flag = "static int calls = 0; if (++calls > 20) abort(); {GOOD}"
    with make() as one:
        found = result(one.evaluate(cpp("{GOOD}", "// x"), against=[cpp(flag)]))
    assert found.verdict is Verdict.PASSED, found.reason
    assert any("failed while timed beside it" in f for f in found.flags)


def test_shapes_outside_the_workloads_are_tried_before_a_best_is_believed(make: Make, cpp: Cpp) -> None:
    memorised = cpp("if (!((m == 7 && n == 33) || (m == 128 && n == 512))) return; {FAST}")
    with make(options={"confirm": True, "confirm_all": True, "confirm_budget_s": 0.1, "outside_batch_ms": 5.0}) as one:
        found = result(one.evaluate(memorised))
    assert found.stage == "confirm"
    assert found.verdict is Verdict.NON_FINITE
    assert "unseen" in found.reason


def test_calls_batched_into_one_are_caught_by_the_outside_clock(make: Make, py: Callable[[str], Program]) -> None:
    # The first call of a queue does all the work of the queue; the others only look as if they were fast.
    text = (
        "import time, sys, numpy as np\n"
        "def work(x): return 2 * x + x.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)\n"
        "real = time.perf_counter_ns\n"
        "def lying():\n    return real() // 40\n"
        "time.perf_counter_ns = lying\n"
        "def run(x):\n    return work(x)\n"
    )
    with make() as one:
        found = result(one.evaluate(py(text)))
    assert found.verdict in (Verdict.FORGED, Verdict.TOO_FAST), found.reason


def test_the_record_is_json_and_says_how_it_was_measured(make: Make, cpp: Cpp) -> None:
    with make() as one:
        measured = one.evaluate(cpp("{GOOD}", "// record"))
    record = json.loads(json.dumps(measured.record, allow_nan=False))
    assert record["sandbox"]["level"] in ("namespaces", "landlock", "limits")
    assert record["build"]["command"][0] == "g++"
    assert record["versions"]["numpy"]
    assert record["disabled_defences"] == []
    track = record["timing"][0]["workloads"]["mid"]
    assert len(track["samples_ns"]) == 2
    assert all(turn for sample in track["samples_ns"] for turn in sample["turns"])
    assert all(len(seed) == 32 for seeds in record["seeds"].values() for seed in seeds)
    assert record["ending"]["killed"]


def test_another_thread_that_starts_it_anew_spoils_no_record(
    make: Make, cpp: Cpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, others = record.make, []

    def late(evaluator: LocalEvaluator, *given: object) -> object:
        others.append(threading.Thread(target=evaluator.close))
        others[0].start()
        others[0].join(0.5)
        return real(evaluator, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(record, "make", late)
    with make() as one:
        measured = one.evaluate(cpp("{GOOD}"))
        others[0].join()
    assert result(measured).verdict is Verdict.PASSED
    assert measured.record["machine"]


@pytest.mark.parametrize("sandbox", ["no_namespaces", "limits"])
def test_it_works_on_lower_rungs_and_says_so(sandbox: str, make: Make, cpp: Cpp) -> None:
    with make(options={"sandbox": sandbox}) as one:
        measured = one.evaluate(cpp("{GOOD}", f"// {sandbox}"))
        assert result(measured).verdict is Verdict.PASSED, result(measured).reason
        assert measured.record["sandbox"]["level"] in ("landlock", "limits")
        bomb = result(one.evaluate(cpp('for (;;) if (fork() < 0) { perror("fork"); _exit(7); }')))
        assert bomb.verdict is Verdict.RUNTIME_ERROR
        assert "fork:" in bomb.reason


def test_without_a_compiler_python_programs_are_measured_all_the_same(make: Make, py: Callable[[str], Program]) -> None:
    base = py("def run(x):\n    return 2 * x + x.mean(axis=1, keepdims=True, dtype='float64').astype('float32')\n")
    with make(baseline=base, options={"compiler": "no-such-compiler"}) as one:
        found = result(one.evaluate(py(base.sources["kernel.py"] + "# same\n")))
        assert found.verdict is Verdict.PASSED, found.reason
        lost = one.evaluate(Program({"a.cpp": "int x;"}, "a.cpp::run", "cpp")).evaluation
        assert isinstance(lost, Lost)
        assert "no compiler 'no-such-compiler' in PATH" in lost.reason


def test_more_threads_where_the_task_grants_them(make: Make, cpp: Cpp) -> None:
    threaded = cpp("std::thread t([]{}); t.join(); {GOOD}")
    with make(threads=2) as one:
        assert result(one.evaluate(threaded)).verdict is Verdict.PASSED


BAD_TASKS = {  # name: (reference.py, part of the message)
    "no such function": ("def inputs(axes, rng): return {}\n", "no function 'reference'"),
    "does not import": ("import nothing_like_it\n", "No module named 'nothing_like_it'. `pip install nothing_like_it`"),
    "inputs raise": (
        "def inputs(axes, rng): return {'x': axes['q']}\ndef reference(i, a): pass\n",
        "inputs() raised KeyError: 'q' (reference.py:1)",
    ),
    "wrong dtype": (
        "import numpy as np\ndef inputs(a, r): return {'x': np.zeros((a['m'], a['n']))}\ndef reference(i, a): pass\n",
        "x is float64[7, 33], declared float32[7, 33]",
    ),
    "reference raises": (
        "import numpy as np\ndef inputs(a, r): return {'x': np.zeros((a['m'], a['n']), np.float32)}\n"
        "def reference(i, a):\n    raise ValueError('not yet')\n",
        "reference() raised ValueError: not yet (reference.py:4)",
    ),
    "wrong shape": (
        "import numpy as np\ndef inputs(a, r): return {'x': np.zeros((a['m'], a['n']), np.float32)}\n"
        "def reference(i, a): return {'y': np.zeros(3)}\n",
        "y has shape (3,), declared (7, 33)",
    ),
    "nothing named y": (
        "import numpy as np\ndef inputs(a, r): return {'x': np.zeros((a['m'], a['n']), np.float32)}\n"
        "def reference(i, a): return {}\n",
        "does not return 'y'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_broken_task_is_refused_before_anything_is_measured(name: str, make: Make, tmp_path: Path) -> None:
    text, message = BAD_TASKS[name]
    (tmp_path / "reference.py").write_text(text)
    with pytest.raises(EvaluatorError, match=r".") as error, make(folder=tmp_path):
        pass
    assert message in str(error.value)


def test_a_wrong_baseline_is_named_as_such(make: Make, cpp: Cpp) -> None:
    with (
        pytest.raises(EvaluatorError, match=r"baseline of task 'scale' fails on workload 'small': wrong_values"),
        make(baseline=cpp("memset(y, 0, m * n * 4);")),
    ):
        pass


def test_a_dead_oracle_loses_the_request_and_the_next_one_works(make: Make, cpp: Cpp) -> None:
    with make() as one:
        one.bench.oracle.process.kill()
        one.bench.oracle.process.wait()
        lost = one.evaluate(cpp("{GOOD}", "// lost")).evaluation
        assert isinstance(lost, Lost)
        assert "oracle" in lost.reason
        assert result(one.evaluate(cpp("{GOOD}", "// found"))).verdict is Verdict.PASSED


def test_threads_may_share_one_evaluator(make: Make, cpp: Cpp) -> None:
    found: list[Evaluation] = []
    with make() as one:
        threads = [
            threading.Thread(target=lambda n=n: found.append(result(one.evaluate(cpp("{GOOD}", f"// thread {n}")))))
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [f.verdict for f in found] == [Verdict.PASSED] * 3


def test_only_one_holder_of_the_timing_lease_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with timing_lease(path), pytest.raises(EvaluatorError, match=r"held by another search"), timing_lease(path, 0.05):
        pass
    with timing_lease(path) as waited_s:
        assert waited_s < 1


def test_defences_are_switched_off_by_the_red_team_only() -> None:
    with pytest.raises(ValueError, match=r"red team"):
        EvaluatorOptions(disabled=frozenset({"poison"}))  # type: ignore[arg-type]
    assert EvaluatorOptions(disabled=frozenset({"poison"}), testing=True).disabled  # type: ignore[arg-type]


def leftovers() -> tuple[int, int, int]:
    """(descriptors, children and grandchildren, files of ours in the temporary folder)"""
    me = os.getpid()
    children = sum(f"PPid:\t{me}\n" in text for text in (_read(p) for p in Path("/proc").glob("[0-9]*/status")))
    ours = len(list(Path("/tmp").glob("ksearch-build-*")))
    return len(list(Path("/proc/self/fd").iterdir())), children, ours


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


HOSTILE = (
    "for (;;) if (fork() < 0) _exit(7);", "*(volatile int*)8 = 1;", 'for (;;) puts("flood");',
    'FILE* f = fopen("junk", "w"); char b[4096] = {}; for (;;) if (fwrite(b, 1, 4096, f) != 4096) _exit(9);',
)  # fmt: skip


def run_many(make: Make, cpp: Cpp, count: int) -> None:
    with make() as one:
        result(one.evaluate(cpp("{GOOD}", "// warm-up")))
        before, home = leftovers(), one.bench.home
        oracle = Path(f"/proc/{one.bench.oracle.process.pid}")
        maps = len((oracle / "maps").read_text().splitlines())
        for n in range(count):
            hostile = n % 4 == 3
            found = result(one.evaluate(cpp(HOSTILE[n // 4 % 4] if hostile else "{GOOD}", f"// {n}")))
            assert (found.verdict is Verdict.PASSED) == (not hostile), found.reason
        assert leftovers()[0] == before[0]
        assert leftovers()[1] == before[1]
        assert list(home.iterdir()) == [one.baseline.folder]
        # The baseline's buffer sets stay, and their number depends on how fast the candidates are.
        assert len(list((oracle / "fd").iterdir())) <= 10 + MAX_SETS * len(one.spec.workloads)
        assert len((oracle / "maps").read_text().splitlines()) <= maps + MAX_SETS * len(one.spec.workloads)
    assert not home.exists()


def test_a_row_of_candidates_leaves_nothing_behind(make: Make, cpp: Cpp) -> None:
    run_many(make, cpp, 8)


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_hundred_candidates_every_fourth_hostile_leave_nothing_behind(make: Make, cpp: Cpp) -> None:
    run_many(make, cpp, 100)


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", bundled_tasks())
def test_no_honest_program_is_taken_for_a_forger_on_a_busy_machine(name: str, quick: EvaluatorOptions) -> None:
    task = load_task(BUNDLED / name)
    if task.spec.device != "cpu":
        pytest.skip("needs a GPU")
    burn = "import time, os, numpy as np\na = np.ones(300000)\nwhile os.getppid() != 1: a *= 1.0000001\n"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(2)]
    try:
        with LocalEvaluator(task.spec, task.folder, options=replace(quick, confirm=True)) as one:
            for program in (task.baseline, *task.strong.values()):
                for _ in range(4):
                    found = one.evaluate(program).evaluation
                    assert isinstance(found, Lost) or found.verdict is Verdict.PASSED, found.reason
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
