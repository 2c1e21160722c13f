"""What a small model is given to copy must compile as it stands, and be right."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

from ksearch.prompts import guide
from ksearch.prompts.guides import headlines

CALLERS = """
extern "C" void all_exp(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = fast_exp(x[i]); }
extern "C" float sum(const float* x, int64_t n) { return fast_sum(x, n); }
extern "C" float maximum(const float* x, int64_t n) { return fast_max(x, n); }
extern "C" float dot(const float* a, const float* b, int64_t n) { return fast_dot(a, b, n); }
"""
POINTER = ctypes.POINTER(ctypes.c_float)


def pointer(x: np.ndarray) -> object:
    return x.ctypes.data_as(POINTER)


def test_its_helpers_compile_without_a_warning_and_compute_what_they_say(tmp_path: Path) -> None:
    blocks = re.findall(r"```cpp\n(.*?)```", guide("cpp", brief=True), re.DOTALL)
    (tmp_path / "all.cpp").write_text("#include <cstdint>\n" + "".join(blocks) + CALLERS)
    order = "g++ -std=c++20 -O3 -march=native -Wall -Wextra -Werror -shared -fPIC all.cpp -o all.so"
    subprocess.run(order.split(), cwd=tmp_path, check=True)
    made = ctypes.CDLL(str(tmp_path / "all.so"))
    made.sum.restype = made.maximum.restype = made.dot.restype = ctypes.c_float
    x = np.linspace(-100, 88, 100_001, dtype=np.float32)
    x[0] = -np.inf
    y = np.empty_like(x)
    made.all_exp(pointer(x), pointer(y), ctypes.c_int64(x.size))
    np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=2e-6, atol=1e-36)
    rng = np.random.default_rng(3)
    for n in (1, 15, 16, 17, 1000):
        a, b = rng.standard_normal((2, n), dtype=np.float32)
        size = ctypes.c_int64(n)
        assert made.maximum(pointer(a), size) == a.max()
        np.testing.assert_allclose(made.sum(pointer(a), size), a.sum(dtype=np.float64), atol=1e-4)
        np.testing.assert_allclose(made.dot(pointer(a), pointer(b), size), np.dot(a, b), atol=1e-4)


def test_each_helper_stands_under_a_line_that_a_planner_is_shown() -> None:
    text = guide("cpp", brief=True)
    shown = headlines(text)
    for name in re.findall(r"inline float (\w+)\(", text):
        assert any(name in line for line in shown), name
    assert not any("fast_exp" in line for line in headlines(guide("cpp", "a product of matrices", brief=True)))
    assert guide("triton", brief=True) == ""
