"""Programs for the bundled softmax that are quick for some sizes only, and share every name with each other."""

from __future__ import annotations

from ksearch.tasks import load_task

TASK = "softmax"
LIMIT = 1500  # columns: three of the five timed workloads lie below, two above
_HELPERS = """
#include <cassert>
#include <cmath>
#include <cstdint>
#define QUICK(cols) ({quick})
#define REPEAT {repeat}

template <typename T> inline T waste(T value) {{  // of one name in both programs, and not the same
    for (volatile int i = 0; i < REPEAT; i = i + 1) {{}}
    return value;
}}
static int calls = 0;
struct State {{ {state} }};
extern "C" int bookkeeping(State* state) {{ assert(state); return ++calls + REPEAT; }}
"""
_BUSY = """    State state{};
    bookkeeping(&state);
    if (!QUICK(cols))
        for (int64_t r = 0; r < 6000; ++r) waste(r);
"""


def source(quick: str, repeat: int, state: str) -> str:
    """The task's own quick program, which looks busy first where `quick` does not hold."""
    (text,) = load_task(TASK).strong["vectorised"].sources.values()
    head = 'extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols) {\n'
    assert head in text
    return text.replace(head, _HELPERS.format(quick=quick, repeat=repeat, state=state) + head + _BUSY)


def narrow() -> str:
    return source(f"cols < {LIMIT}", 400, "int a;")


def wide() -> str:
    return source(f"cols >= {LIMIT}", 401, "double a, b;")
