"""What programs do wrong on a GPU, what their writers are told, and that the next program does not notice."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ksearch.types import Evaluation, Program, Verdict
from tests.gpu.conftest import GOOD, cuda, file, python

Judge = Callable[[Program], Evaluation]
HONEST = "softmax<<<rows, 256, 0, stream>>>(x, y, cols); "
WILD = "__global__ void wild(float* p) { p[1ull << 45] = 1; }"
ENDLESS = "__global__ void endless(float* p) { while (((volatile float*)p)[0] != 12345.f); }"
CASES = {  # name: (program, verdict, part of the reason)
    "illegal address": (cuda(kernel=WILD, body="wild<<<1, 1, 0, stream>>>(y);"), "runtime_error", "illegal memory"),
    "endless kernel": (cuda(kernel=ENDLESS, body="endless<<<1, 1, 0, stream>>>(y);"), "timeout", "not done after"),
    "segfault": (cuda(body="*(volatile int*)8 = 1;"), "runtime_error", "SIGSEGV"),
    "exit 0": (cuda(body="_exit(0);"), "forged", "exit code 0"),
    "bad launch": (
        cuda(body="softmax<<<rows, 2048, 0, stream>>>(x, y, cols);"), "non_finite", "not finite",
    ),
    "compile error": (cuda(body="nonsense;"), "compile_error", "nonsense"),
    "no such entry": (
        Program({"kernel.cu": "void other() {}\n"}, "kernel.cu::run", "cuda"), "compile_error", "is not exported",
    ),
    "nothing": (cuda(body=""), "non_finite", "not finite"),
    "past the end": (
        cuda(kernel="__global__ void past(float* y, int64_t n) { y[n] = 1; }",
             body=HONEST + "past<<<1, 1, 0, stream>>>(y, rows * cols);"),
        "runtime_error", "past the end of y",
    ),
    "input overwritten": (
        cuda(kernel="__global__ void spoil(float* x) { x[5] += 1; }",
             body=HONEST + "spoil<<<1, 1, 0, stream>>>((float*)x);"),
        "input_changed", "input x was changed",
    ),
    "exception": (python("    raise ValueError('no such tile')\n"), "runtime_error", "no such tile"),
    "missing package": (python(GOOD, "import no_such_package"), "runtime_error", "No module named 'no_such_package'"),
    "syntax error": (python("    return torch.softmax(x dim=1)\n"), "compile_error", "invalid syntax"),
    "missing function": (
        Program({"kernel.py": "def other(x):\n    return x\n"}, "kernel.py::run", "python"), "compile_error",
        "no function 'run'",
    ),
    "wrong shape": (python("    return torch.softmax(x, dim=1)[1:]\n"), "wrong_shape", "shape [36, 7], wanted [37, 7]"),
    "wrong dtype": (python("    return torch.softmax(x, dim=1).half()\n"), "wrong_dtype", "torch.float16"),
    "wrong device": (python("    return torch.softmax(x, dim=1).cpu()\n"), "wrong_dtype", "on device cpu"),
    "wrong strides": (
        python("    return torch.softmax(x, dim=1).t().contiguous().t()\n"), "wrong_shape", "strides [1, 37]",
    ),
    "two values": (python("    return x, x\n"), "wrong_shape", "returned 2 values"),
    "none": (python("    return None\n"), "non_finite", "not finite"),
    "lazy subclass": (
        python("    return torch.softmax(x, dim=1).as_subclass(Lazy)\n", "class Lazy(torch.Tensor):\n    pass\n"),
        "wrong_dtype", "returned a Lazy",
    ),
    "nan": (python("    y = torch.softmax(x, dim=1)\n    y[3, 2] = float('nan')\n    return y\n"), "non_finite",
            "y[3, 2] is not finite"),
    "zeros": (python("    return torch.zeros_like(x)\n"), "wrong_values", "259 of 259 elements wrong"),
    "overflow": (
        python("    e = torch.exp(x)\n    return e / e.sum(1, keepdim=True)\n"), "non_finite", "awkward values, case 0",
    ),
    "one output buffer": (
        python("    y = kept.setdefault(x.shape, torch.empty_like(x))\n    torch.softmax(x, dim=1, out=y)\n"
               "    return y\n", "kept = {}\n"),
        "stale_output", "results are reused",
    ),
    "cached by shape": (
        python("    if x.shape not in kept:\n        kept[x.shape] = torch.softmax(x, dim=1)\n"
               "    return kept[x.shape].clone()\n", "kept = {}\n"),
        "stale_output", "another call",
    ),
    "cached by address": (
        python("    if x.data_ptr() not in kept:\n        kept[x.data_ptr()] = torch.softmax(x, dim=1)\n"
               "    return kept[x.data_ptr()].clone()\n", "kept = {}\n"),
        "stale_output", "another call",
    ),
    "out of memory": (
        python("    y = torch.empty(1 << 40, device='cuda')\n" + GOOD), "out_of_memory", "CUDA out of memory",
    ),
    "memory hog": (
        python("    if not kept:\n        free = torch.cuda.mem_get_info()[0]\n"
               "        kept.append(torch.empty(free - (96 << 20), dtype=torch.uint8, device='cuda'))\n" + GOOD,
               "kept = []\n"),
        "out_of_memory", "of the GPU's memory",
    ),
    "triton mistake": (
        Program({"kernel.py": "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x):\n"
                 "    tl.store(x, undefined_name)\n\n\ndef run(x):\n    k[(1,)](x)\n"}, "kernel.py::run", "triton"),
        "runtime_error", "undefined_name",
    ),
    "output flood": (
        python("    for _ in range(10**9):\n        print('all work and no play')\n"), "runtime_error",
        "printed more than",
    ),
    "patched times": (
        python("    for _ in range(20):\n        y = torch.softmax(x, dim=1)\n    return y\n",
               "from ksearch.evaluators.gpu import cuda\nreal = cuda.Cuda.elapsed_ns\n"
               "cuda.Cuda.elapsed_ns = lambda *a: real(*a) // 40\n"),
        "forged", "outside clock",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_program_gets_its_verdict_and_a_reason(name: str, judge: Judge) -> None:
    program, verdict, words = CASES[name]
    found = judge(program)
    assert (str(found.verdict), words in found.reason) == (verdict, True), (
        f"{found.verdict}: {found.reason}\n{found.log}"
    )
    assert "\n" not in found.reason


@pytest.mark.parametrize("program", [
    file("softmax_triton.py", "triton"), file("softmax.cu", "cuda"), python(GOOD),
    Program({"k.py": "import torch\n\n\ndef run(x, y):\n    torch.softmax(x, dim=1, out=y)\n"}, "k.py::run", "python"),
    python("    stream = torch.cuda.current_stream()  # cached\n    with torch.cuda.stream(stream):\n    " + GOOD),
], ids=["triton", "cuda", "torch", "destination passing", "current stream"])  # fmt: skip
def test_an_honest_program_passes(program: Program, judge: Judge) -> None:
    found = judge(program)
    assert found.verdict is Verdict.PASSED, f"{found.reason}\n{found.log}"


def test_a_hung_process_is_no_timeout(judge: Judge) -> None:
    start = time.monotonic()
    found = judge(python("    import time\n    time.sleep(1000)\n"))
    assert found.verdict is Verdict.HANG
    assert time.monotonic() - start < 25


def test_work_on_another_stream_is_timed(judge: Judge) -> None:
    """Without waiting for it: the results are there when they are looked at, but it must not look free."""
    side = python(
        "    with torch.cuda.stream(side):\n        for _ in range(40):\n            y = torch.softmax(x, dim=1)\n"
        "    return y\n", "side = torch.cuda.Stream()\n",
    )  # fmt: skip
    found = judge(side)
    assert found.verdict in (Verdict.PASSED, Verdict.FORGED), found.reason
    if found.verdict is Verdict.PASSED:
        assert found.speedup is not None
        assert found.speedup.value < 0.3


def test_work_on_another_stream_that_is_waited_for_is_no_offence(judge: Judge) -> None:
    """The honest twin: it joins."""
    found = judge(python(
        "    here = torch.cuda.current_stream()\n    side.wait_stream(here)\n    with torch.cuda.stream(side):\n"
        "        y = torch.softmax(x, dim=1)\n    here.wait_stream(side)\n    y.record_stream(here)\n    return y\n",
        "side = torch.cuda.Stream()\n",
    ))  # fmt: skip
    assert found.verdict is Verdict.PASSED, found.reason


def test_a_program_bound_by_launching_passes_with_its_end_to_end_time(judge: Judge) -> None:
    many = python(
        "    y = x.clone()\n    for _ in range(40):\n        y = y + 0.0\n    return torch.softmax(y, dim=1)\n"
    )
    found = judge(many)
    assert found.verdict is Verdict.PASSED, found.reason
    assert any("bound by launching" in flag for flag in found.flags), found.flags
    assert found.speedup is not None
    assert found.speedup.value < 0.5


def test_the_next_program_is_unaffected_by_a_broken_one(judge: Judge) -> None:
    for name in ("illegal address", "endless kernel", "memory hog"):
        assert judge(CASES[name][0]).verdict is not Verdict.PASSED
        assert judge(python(GOOD)).verdict is Verdict.PASSED
