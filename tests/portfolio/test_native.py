"""C++ parts that share every name, compiled together and called."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ksearch.definition import TaskSpec, Tensor, Tolerance, Workload
from ksearch.portfolio.choosing import PortfolioError
from ksearch.portfolio.composing import compose, seen_axes
from ksearch.portfolio.rule import Leaf, Split
from ksearch.types import Program

BASELINE = Program({"k.cpp": "-"}, "k.cpp::run", "cpp")
SPEC = TaskSpec(
    "scale", "run", ("n", "kind"), (Tensor("x", "float32", ("n",)),), (Tensor("y", "float32", ("n",)),),
    (Workload("few", {"n": 4, "kind": 1}), Workload("many", {"n": 400, "kind": 1})),
    {"float32": Tolerance(1e-5, 1e-5, 1e-5)}, BASELINE,
)  # fmt: skip
RUN = 'extern "C" void run(const float* x, float* y, int64_t n, int64_t kind)'


def composed(first: Program, second: Program, spec: TaskSpec = SPEC) -> Program:
    rule = Split(("n",), 40, Leaf(first.id, ("few",)), Leaf(second.id, ("many",)))
    program, notes = compose({p.id: p for p in (first, second)}, rule, spec)
    assert notes == []
    return program


def single(factor: int, extra: str = "") -> Program:
    text = f"""
#include <cstdint>
// #include <no/such/header>
/* extern "C" void in_a_comment(int); */
#ifdef __ARM_NEON
#include <arm_neon.h>
#endif
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <algorithm>
#include <cassert>
#define FACTOR {factor}
{extra}
namespace {{ int hidden = FACTOR; }}
static float helper(float v) {{ return v * FACTOR; }}
template <typename T> T weak(T v) {{ return helper(v) + 0 * hidden; }}
inline float inlined(float v) {{ return weak(v) * FACTOR / FACTOR; }}
struct Thing {{ char bytes[FACTOR]; float f(float v); }};
float Thing::f(float v) {{ return inlined(v); }}
const char* text = R"(extern "C" void in_a_string(int) {{)";
extern "C" {{
int shared = FACTOR;
float exported(float v);
}}
extern "C" __attribute__((noinline)) float exported(float v) {{ return Thing().f(v); }}
extern "C" double sqrt(double);
{RUN} {{
    assert(kind >= 0);
    for (int64_t i = 0; i < n; ++i) y[i] = exported(x[i]) + float(sqrt(0.0)) + 0 * std::min(kind, n);
}}
"""
    # a variable has no name of its own under C's rules: the two would be one
    return Program({"kernel.cpp": text.replace("int shared = FACTOR;\n", "")}, "kernel.cpp::run", "cpp")


def several(factor: int) -> Program:
    """Two sources, and headers that include each other, in folders."""
    return Program(
        {
            "src/kernel.cpp": f'#include "../inc/util.h"\n#include "cstring"\n{RUN} {{ loop(x, y, n); }}\n',
            "src/util.cpp": f'#include "../inc/util.h"\nvoid loop(const float* x, float* y, int64_t n) '
            f"{{ for (int64_t i = 0; i < n; ++i) y[i] = {factor} * x[i] * one(); }}\n",
            "inc/util.h": '#pragma once\n#include <cstdint>\n#include "one.h"\n'
            "void loop(const float*, float*, int64_t);\n",
            "inc/one.h": "#ifndef ONE\n#define ONE\n#include <cmath>\n"
            "inline float one() { return std::fabs(-1.0f); }\n#endif\n",
        },
        "src/kernel.cpp::run",
        "cpp",
    )


def built(program: Program, folder: Path) -> ctypes.CDLL:
    for path, text in program.sources.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    files = sorted(p for p in program.sources if p.endswith(".cpp"))
    command = ["g++", "-O1", "-std=c++20", "-shared", "-fPIC", "-I.", *files, "-o", "program.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "program.so"))


def called(library: ctypes.CDLL, n: int) -> float:
    x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
    library.run(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int64(n), ctypes.c_int64(1))
    assert (y == y[0]).all()
    return float(y[0])


def test_parts_that_share_every_name_do_not_meet(tmp_path: Path) -> None:
    library = built(composed(single(3), single(5)), tmp_path)
    assert [called(library, n) for n in (1, 40, 41, 400)] == [3, 3, 5, 5]


def test_parts_of_several_files_keep_them_beside_each_other(tmp_path: Path) -> None:
    library = built(composed(several(3), several(5)), tmp_path)
    assert [called(library, n) for n in (1, 400)] == [3, 5]


def test_the_text_of_a_part_is_as_it_was_measured_and_the_rule_can_be_read() -> None:
    parts = single(3), single(5)
    program = composed(*parts)
    assert {t for p, t in program.sources.items() if p.endswith(".inc")} == {
        part.sources["kernel.cpp"] for part in parts
    }
    dispatch = program.sources["dispatch.cpp"]
    assert "if (n <= 40) {" in dispatch
    assert "// few (n 4, kind 1)" in dispatch
    assert composed(*parts).id == program.id


def test_options_in_front_of_the_headers_stay_in_front_of_them() -> None:
    part = single(3)
    text = '/*\n#pragma GCC optimize("O0")\n*/\n#pragma GCC optimize("Ofast")\n' + part.sources["kernel.cpp"]
    program = composed(Program({"kernel.cpp": text}, "kernel.cpp::run", "cpp"), single(5))
    wrapper = next(t for p, t in program.sources.items() if p.endswith(".cpp") and "Ofast" in t)
    assert wrapper.index("Ofast") < wrapper.index("#include <cstdint>")
    assert "O0" not in wrapper


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ({"k.cpp": "#include <mine.h>\n" + RUN + "{}", "mine.h": ""}, "only quotes find it"),
        ({"a/k.cpp": '#include "mine.h"\n' + RUN + "{}", "mine.h": ""}, "as seen from the top"),
        ({"k.cpp": '#include "other.cpp"\n' + RUN + "{}", "other.cpp": ""}, "one of the two has to go"),
    ],
)
def test_includes_that_would_mean_something_else_are_refused(sources: dict[str, str], why: str) -> None:
    first = next(iter(sources))
    with pytest.raises(PortfolioError, match=why):
        composed(Program(sources, f"{first}::run", "cpp"), single(5))


def test_languages_that_do_not_go_together_are_refused() -> None:
    other = Program({"k.py": "def run(x): return x"}, "k.py::run", "python")
    with pytest.raises(PortfolioError, match=r"C\+\+ and Python cannot become one program"):
        composed(single(3), other)
    with pytest.raises(PortfolioError, match="there is no portfolio for language fortran"):
        composed(replace(single(3), language="fortran"), replace(single(5), language="fortran"))


def test_an_axis_that_no_shape_depends_on_is_no_reason_to_choose() -> None:
    assert seen_axes(SPEC, "cpp") == ["n"]


def test_cuda_passes_the_stream_on_and_brings_the_types_it_names() -> None:
    spec = replace(SPEC, device="cuda", outputs=(Tensor("y", "bfloat16", ("n",)),),
                   tolerance={"bfloat16": Tolerance(1, 1, 1)})  # fmt: skip
    parts = [Program({"k.cu": f"// {i}\n{RUN} {{}}\n"}, "k.cu::run", "cuda") for i in range(2)]
    program = composed(parts[0], parts[1], spec)
    dispatch = program.sources["dispatch.cu"]
    assert program.entry_point == "dispatch.cu::run"
    assert "#include <cuda_bf16.h>" in dispatch
    assert "__nv_bfloat16* y, int64_t n, int64_t kind, cudaStream_t stream)" in dispatch
    assert "_run(x, y, n, kind, stream);" in dispatch
