"""What programs do wrong, and what their writers are told. Each case runs for real; the next one must not notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ksearch.definition import TaskSpec, Tolerance
from ksearch.evaluators.local import LocalEvaluator
from ksearch.types import Evaluation, Program, Verdict

ENDLESS = "for (volatile int i = 0;;) i = 1;"
CASES = {  # name: (body, before, verdict, stage, part of the reason)
    "segfault": ("*(volatile int*)8 = 1;", "", "runtime_error", "smoke", "SIGSEGV: segmentation fault"),
    "abort": ('fputs("assertion x failed\\n", stderr); abort();', "", "runtime_error", "smoke", "assertion x failed"),
    "exception": ('throw std::runtime_error("no such tile");', "", "runtime_error", "smoke", "no such tile"),
    "bad_alloc": ("std::vector<char> v(1ul << 40); y[0] = v[9];", "", "out_of_memory", "smoke", "bad_alloc"),
    "memory hog": (
        'for (;;) { char* p = (char*)malloc(1 << 26); if (!p) throw std::bad_alloc(); p[9] = 1; }',
        "", "out_of_memory", "smoke", "bad_alloc",
    ),
    "endless loop": (ENDLESS, "", "timeout", "smoke", "not done after 2 s"),
    "sleeps": ("for (;;) sleep(1);", "", "hang", "smoke", "waits for something"),
    "exit 0": ("_exit(0);", "", "forged", "smoke", "exit code 0"),
    "exit 0 at import": (
        "{GOOD}", "__attribute__((constructor)) static void f() { _exit(0); }", "forged", "smoke", "exit code 0",
    ),
    "exit 3": ("_exit(3);", "", "runtime_error", "smoke", "exit code 3"),
    "output flood": ('for (;;) puts("all work and no play");', "", "runtime_error", "smoke", "printed more than"),
    "fork bomb": ("for (;;) if (fork() < 0) { perror(\"fork\"); _exit(7); }", "", "runtime_error", "smoke", "fork:"),
    "thread": ("std::thread t([]{}); t.join(); {GOOD}", "", "runtime_error", "smoke", "temporarily unavailable"),
    "disk filler": (
        'char b[65536] = {}; for (int f = 0; f < 500; f++) { char s[20]; sprintf(s, "f%d", f); FILE* o = fopen(s, "w");'
        ' for (int i = 0; i < 100; i++) if (!o || fwrite(b, 1, 65536, o) != 65536) { perror("disk"); _exit(9); } }',
        "", "runtime_error", "smoke", "disk:",
    ),
    "zeros": ("memset(y, 0, m * n * 4);", "", "wrong_values", "smoke", "231 of 231 elements wrong"),
    "one element": ("{GOOD} if (m > 100) y[3 * n + 5] += 1;", "", "wrong_values", "check", "y[3, 5] is wrong"),
    "nothing": ("", "", "non_finite", "smoke", "y[0, 0] is not finite"),
    "one nan": ("{GOOD} y[m * n - 1] = __builtin_nanf(\"\");", "", "non_finite", "smoke", "1 of 231"),
    "input overwritten": ("{GOOD} x[0] = 5;", "", "input_changed", "smoke", "input x was changed"),
    "past the end": ("{GOOD} y[m * n] = 5;", "", "runtime_error", "smoke", "past the end of y"),
    "cached result": (
        "static std::vector<float> c; if (c.size() != m * n) { {GOOD} c.assign(y, y + m * n); }"
        " else memcpy(y, c.data(), m * n * 4);",
        "", "stale_output", "check", "another call",
    ),
    "poison only": ("for (int64_t k = 0; k < m * n; k++) if (y[k] != y[k]) { {GOOD} break; }", "",
                    "wrong_values", "check", "is wrong"),
    "overflow": (
        "for (int64_t i = 0; i < m; i++) { float s = 0, q = 0; for (int64_t j = 0; j < n; j++)"
        " { s += x[i*n+j]; q += x[i*n+j] * x[i*n+j]; } for (int64_t j = 0; j < n; j++)"
        " y[i*n+j] = 2 * x[i*n+j] + s / n + q - q; }",
        "", "non_finite", "check", "awkward values, case 1",
    ),
}  # fmt: skip


def evaluation(evaluator: LocalEvaluator, program: Program) -> Evaluation:
    found = evaluator.evaluate(program).evaluation
    assert isinstance(found, Evaluation), found
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_program_gets_its_verdict_and_a_reason(
    name: str, evaluator: LocalEvaluator, cpp: Callable[..., Program]
) -> None:
    body, before, verdict, stage, reason = CASES[name]
    found = evaluation(evaluator, cpp(body, before))
    assert (found.verdict, found.stage) == (verdict, stage), found.reason
    assert reason in found.reason
    assert found.speedup is None
    assert found.device


def test_a_right_program_passes_after_all_of_these(evaluator: LocalEvaluator, cpp: Callable[..., Program]) -> None:
    found = evaluation(evaluator, cpp("{GOOD}", "// after the others"))
    assert found.verdict is Verdict.PASSED, found.reason
    assert found.speedup is not None
    assert {w.workload for w in found.workloads} == {"small", "mid"}


def test_signals_to_others_and_sockets_are_refused_but_harmless(
    evaluator: LocalEvaluator, cpp: Callable[..., Program]
) -> None:
    found = evaluation(evaluator, cpp("kill(getppid(), 9); kill(1, 9); kill(-1, 9); {GOOD}"))
    assert found.verdict is Verdict.PASSED, found.reason
    found = evaluation(evaluator, cpp("if (socket(AF_INET, SOCK_STREAM, 0) < 0) { {GOOD} }"))
    assert found.verdict is Verdict.PASSED, found.reason


BUILDS = {  # name: (source, verdict, part of the reason)
    "syntax": ("int x = ;", "compile_error", "kernel.cpp:1:9: error: expected primary-expression"),
    "no such symbol": ("void run(float*) {}", "compile_error", "exported: _Z3runPf"),
    "undefined": ('void foo(); extern "C" void run() { foo(); }', "compile_error", "undefined symbol: _Z3foov"),
    "reads secrets": ('#include "/root/.bashrc"\n', "compile_error", "error"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_what_does_not_build_says_why(name: str, evaluator: LocalEvaluator) -> None:
    source, verdict, reason = BUILDS[name]
    found = evaluation(evaluator, Program({"kernel.cpp": source}, "kernel.cpp::run", "cpp"))
    assert found.verdict == verdict, found.reason
    assert reason in found.reason


def test_an_endless_compile_is_cut_off(
    make: Callable[..., LocalEvaluator], spec: TaskSpec, cpp: Callable[..., Program]
) -> None:
    slow = (
        "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; i++) s ^= i; return s; }\n"
        "template <int N> struct A { static constexpr int v = f(200000 + N) + A<N - 1>::v; };\n"
        "template <> struct A<0> { static constexpr int v = 0; };\nint big = A<800>::v;"
    )
    with make(limits=replace(spec.limits, build_s=1.0)) as one:
        found = evaluation(one, cpp("{GOOD}", slow))
        assert (found.verdict, found.stage) == ("timeout", "build"), found.reason
        assert "did not finish within 1 s" in found.reason


def test_an_unknown_language_is_refused(evaluator: LocalEvaluator) -> None:
    found = evaluation(evaluator, Program({"a.rs": "fn main() {}"}, "a.rs::run", "rust"))
    assert found.verdict is Verdict.COMPILE_ERROR
    assert "rust" in found.reason


MEAN = "x.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)"
PYTHON = {  # name: (source, verdict, part of the reason)
    "right": (f"def run(x):\n    return 2 * x + {MEAN}", "passed", ""),
    "right, writes into the output": (f"def run(x, y):\n    y[...] = 2 * x + {MEAN}", "passed", ""),
    "float64": (f"def run(x):\n    return (2 * x + {MEAN}).astype(np.float64)", "wrong_dtype", "dtype float64"),
    "shape": ("def run(x):\n    return x[:1]", "wrong_shape", "shape [1, 33], wanted [7, 33]"),
    "two results": ("def run(x):\n    return x, x", "wrong_shape", "returned 2 values, wanted 1"),
    "subclass": (
        f"class A(np.ndarray): pass\ndef run(x):\n    return (2 * x + {MEAN}).view(A)", "wrong_dtype", "plain numpy",
    ),
    "raises": ("def run(x):\n    raise ValueError('odd tile')", "runtime_error", "ValueError: odd tile"),
    "memory": ("def run(x):\n    return np.ones(1 << 36)", "out_of_memory", "MemoryError"),
    "sys.exit": ("import sys\nsys.exit(0)", "forged", "SystemExit(0)"),
    "os._exit": ("import os\nos._exit(0)", "forged", "exit code 0"),
    "syntax": ("def run(x:", "compile_error", "SyntaxError"),
    "other name": ("def go(x): pass", "compile_error", "functions here: go"),
    "one buffer for all calls": (
        "B = {}\ndef run(x):\n    b = B.setdefault(x.shape, np.empty_like(x))\n"
        f"    np.multiply(x, 2, out=b)\n    b += {MEAN}\n    return b", "stale_output", "buffer reused",
    ),
    "answers itself": (
        "import os, socket\ndef run(x):\n    for fd in range(3, 64):\n        try:\n"
        "            socket.socket(fileno=os.dup(fd)).send(b'{\"ns\": [1]}')\n        except OSError: pass\n"
        f"    return 2 * x + {MEAN}", "forged", "runner's descriptor",
    ),
    "endless answer": (
        "import os, socket\ndef run(x):\n    for fd in range(3, 64):\n        try:\n"
        "            socket.socket(fileno=os.dup(fd)).send(b'9' * 100000)\n        except OSError: pass\n"
        "    return x", "forged", "runner's descriptor",
    ),
    "broken answer": (
        "import json\njson.JSONEncoder.encode = lambda *a: '{}'\njson.dumps = lambda *a, **k: '[1,2'\n"
        f"def run(x):\n    return 2 * x + {MEAN}", "forged", "not JSON",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_python_programs_get_their_verdicts(name: str, evaluator: LocalEvaluator, py: Callable[[str], Program]) -> None:
    source, verdict, reason = PYTHON[name]
    found = evaluation(evaluator, py(f"import numpy as np\n{source}\n"))
    assert found.verdict == verdict, found.reason
    assert reason in found.reason


def test_lower_precision_is_a_verdict_of_its_own(
    make: Callable[..., LocalEvaluator], cpp: Callable[..., Program]
) -> None:
    low = cpp("{GOOD} for (int64_t k = 0; k < m * n; k++) y[k] = (float)(_Float16)y[k];")
    loose = {"float32": Tolerance(1e-2, 1e-2, 1e-2)}
    with make(tolerance=loose, precision="float32", options={"disabled": {"awkward"}, "testing": True}) as one:
        found = evaluation(one, low)
        assert found.verdict is Verdict.LOWER_PRECISION, found.reason
        assert "float32" in found.reason
        assert evaluation(one, cpp("{FAST}")).verdict is Verdict.PASSED


def test_a_forbidden_library_is_found_by_what_is_used_not_by_words(
    make: Callable[..., LocalEvaluator], cpp: Callable[..., Program], py: Callable[[str], Program]
) -> None:
    with make(forbid=("cblas_", "numpy.linalg")) as one:
        call = cpp('dlopen("libopenblas.so", 1); {GOOD}', "#include <dlfcn.h>")
        found = evaluation(one, call)
        assert found.verdict is Verdict.FORBIDDEN_LIBRARY
        assert "dlopen" in found.reason
        assert evaluation(one, cpp("/* unlike cblas_sgemm */ {GOOD}")).verdict is Verdict.PASSED
        found = evaluation(one, py("import numpy as np\ndef run(x):\n    return np.linalg.norm(x)\n"))
        assert found.verdict is Verdict.FORBIDDEN_LIBRARY
        assert "kernel.py:3: uses numpy.linalg.norm" in found.reason
