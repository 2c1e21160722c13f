"""Python parts, composed and called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ksearch.definition import TaskSpec, Tensor, Tolerance, Workload
from ksearch.portfolio.choosing import PortfolioError
from ksearch.portfolio.composing import compose, seen_axes
from ksearch.portfolio.rule import Leaf, Split
from ksearch.types import Program

SPEC = TaskSpec(
    "scale", "run", ("rows", "n", "lambda", "kind"),
    (Tensor("x", "float32", ("rows", "n")), Tensor("w", "float32", ("lambda + 1",))),
    (Tensor("y", "float32", ("rows", "n")),),
    (Workload("few", {"rows": 2, "n": 4, "lambda": 1, "kind": 1}),
     Workload("many", {"rows": 2, "n": 400, "lambda": 1, "kind": 1})),
    {"float32": Tolerance(1e-5, 1e-5, 1e-5)}, Program({"k.py": "-"}, "k.py::run", "python"),
    languages=("python",),
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("part_") or name in ("helper", "other"):
            del sys.modules[name]


def returning(factor: int, name: str = "kernel.py", extra: str = "") -> Program:
    return Program({name: f"{extra}\nF = {factor}\ndef run(x, w):\n    return x * F\n"}, f"{name}::run", "python")


def filling(factor: int) -> Program:
    text = f"import numpy as np\nF = {factor}\ndef run(x, w, y):\n    np.multiply(x, F, out=y)\n"
    return Program({"kernel.py": text}, "kernel.py::run", "python")


def composed(first: Program, second: Program) -> tuple[Program, list[str]]:
    rule = Split(("rows", "n"), 80, Leaf(first.id, ("few",)), Leaf(second.id, ("many",)))
    return compose({p.id: p for p in (first, second)}, rule, SPEC)


def loaded(program: Program, folder: Path) -> Callable[..., Any]:
    """As the runner does it."""
    for path, text in program.sources.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    file, _, name = program.entry_point.partition("::")
    scope: dict[str, Any] = {"__name__": "program", "__file__": str(folder / file)}
    exec(compile(program.sources[file], file, "exec"), scope)  # noqa: S102
    entry: Callable[..., Any] = scope[name]
    return entry


X, W = np.ones((2, 4), np.float32), np.ones(2, np.float32)
WIDE = np.ones((2, 400), np.float32)


def test_parts_that_return_are_returned_from(tmp_path: Path) -> None:
    program, notes = composed(returning(3), returning(5))
    entry = loaded(program, tmp_path)
    assert (entry.__code__.co_argcount, notes) == (2, [])
    assert (entry(X, W)[0, 0], entry(WIDE, W)[0, 0], entry(X, W)[0, 0]) == (3, 5, 3)


def test_parts_that_fill_in_their_outputs_are_given_them(tmp_path: Path) -> None:
    program, notes = composed(filling(3), filling(5))
    entry = loaded(program, tmp_path)
    assert (entry.__code__.co_argcount, notes) == (3, [])
    for x, factor in ((X, 3), (WIDE, 5)):
        y = np.zeros_like(x)
        assert entry(x, W, y) is None
        assert (y == factor).all()


def test_parts_of_both_kinds_go_together_and_the_copy_is_told(tmp_path: Path) -> None:
    program, notes = composed(filling(3), returning(5))
    entry = loaded(program, tmp_path)
    assert "is copied" in notes[0]
    for x, factor in ((X, 3), (WIDE, 5)):
        y = np.zeros_like(x)
        entry(x, W, y)
        assert (y == factor).all()


def test_a_part_is_imported_by_the_first_call_that_needs_it(tmp_path: Path) -> None:
    program, _ = composed(returning(3), returning(5, extra="raise RuntimeError('not for small ones')"))
    entry = loaded(program, tmp_path)
    assert entry(X, W)[0, 0] == 3
    with pytest.raises(RuntimeError, match="not for small ones"):
        entry(WIDE, W)


def test_a_part_may_import_files_of_its_own(tmp_path: Path) -> None:
    text = "from helper import F\ndef run(x, w):\n    import other\n    return x * F * other.ONE\n"
    part = Program({"main.py": text, "helper.py": "F = 3\n", "other.py": "ONE = 1\n"}, "main.py::run", "python")
    program, _ = composed(part, returning(5))
    entry = loaded(program, tmp_path)
    assert (entry(X, W)[0, 0], entry(WIDE, W)[0, 0]) == (3, 5)


def test_two_parts_with_modules_of_one_name_are_refused() -> None:
    parts = [
        Program({f"main{i}.py": "from helper import run\n", "helper.py": f"# {i}\n"}, f"main{i}.py::run", "python")
        for i in range(2)
    ]
    with pytest.raises(PortfolioError, match="both have a module helper"):
        composed(*parts)


def test_triton_and_python_go_together_and_what_one_sets_for_all_is_told() -> None:
    switch = "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    first = returning(3, extra=switch)
    second = Program(returning(5).sources, "kernel.py::run", "triton")
    program, notes = composed(first, second)
    assert program.language == "python"
    assert "allow_tf32 = True" in notes[0]


def test_only_sizes_that_an_array_tells_are_looked_at() -> None:
    assert seen_axes(SPEC, "python") == ["rows", "n"]
    assert seen_axes(SPEC, "cpp") == ["rows", "n", "lambda"]
