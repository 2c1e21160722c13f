"""Every mistake in a task folder is one error that names file, line, value and fix."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ksearch.definition import TaskSpec
from ksearch.errors import TaskError
from ksearch.tasks import load_task

X = 'gate = { dtype = "float32", shape = ["rows", "cols"] }'
SMALL = "axes = { rows = 64, cols = 512 }"
TOLERANCE = "rtol = 1e-4\natol = 1e-6\nnorm = 1e-5"

# (text of task.toml, its replacement, the place that the error names, what else it says)
MISTAKES = {
    "invalid TOML": ("[floor]", "[floor", None, ["not valid TOML", "line"]),
    "future format": ("format = 1\nname", "format = 7\nname", "format = 7", ["7 is not supported", "reads format 1"]),
    "missing format": ("format = 1\nname", "name", None, ["format: missing", "Add it"]),
    "missing name": ('name = "example"\n', "", None, ["name: missing"]),
    "bad name": ('name = "example"', 'name = "My Task"', "name = ", ["'My Task' is no name", "small letters"]),
    "missing description": ("description = ", "prose = ", None, ["description: missing"]),
    "empty description": ('"""\ny[r, c]', '"""\n"""\nx = """', "description", ["description", "empty"]),
    "unknown key": ("entry_point = ", "entrypoint = ", "entrypoint", ["unknown key", "'entry_point'"]),
    "unknown key in a table": ("shape = [\"rows\"] }", 'shape = ["rows"], mutble = true }', "peak = ", ["mutble"]),
    "misspelt field": ("operations = ", "operation = ", "[floor]", ["floor.operations: missing", "'operation'"]),
    "wrong type": ('entry_point = "run"', "entry_point = 3", "entry_point", ["must be a text, got 3"]),
    "unknown language": ('languages = ["cpp"]', 'languages = ["c++"]', "languages", ["unknown language 'c++'", "cpp"]),
    "unknown program language": ('language = "cpp"\n', 'language = "cp"\n', "language = ", ["'cp'", "'cpp'"]),
    "baseline in another language": ('language = "cpp"\n', 'language = "python"\n', "language = ", ["Use cpp"]),
    "axis without max": ("rows = { min = 1, max = 2048 }", "rows = { min = 1 }", "rows = {", ["max: missing"]),
    "empty range": ("max = 2048 }", "max = 0 }", "rows = {", ["0 is too small"]),
    "no multiple in range": ("max = 2048 }", "max = 31, multiple_of = 32 }", "rows = {", ["holds no value"]),
    "axis named like a function": ("rows = { min", "max = { min", "max = {", ["'max' cannot name an axis"]),
    "wrong axis in a shape": (X, X.replace("cols", "clos"), "gate = ", ["'clos'", "rows, cols", "'cols'"]),
    "wrong axis in a formula": (X, X.replace('"cols"', '"2 * col"'), "gate = ", ["'col' in '2 * col'", "'cols'"]),
    "shape is no arithmetic": (X, X.replace('"cols"', '"open(1)"'), "gate = ", ["open(1)", "Correct the formula"]),
    "shape of size zero": (X, X.replace('"cols"', '"cols - cols"'), SMALL, ["gate is empty"]),
    "shape of half an element": (X, X.replace('"cols"', '"cols / 7"'), SMALL, ["gate", "not a size"]),
    "zero dimension": (X, X.replace('"cols"', "0"), "gate = ", ["dimension 0"]),
    "unknown dtype": (X, X.replace("float32", "float23"), "gate = ", ["'float23'", "'float32'"]),
    "name taken twice": ("up = { dtype", "rows = { dtype", "rows = { dtype", ["already that of an axis"]),
    "mutable output": ('shape = ["rows"] }', 'shape = ["rows"], mutable = true }', "peak = ", ["unknown key"]),
    "zero tolerance": (TOLERANCE, "rtol = 0\natol = 0\nnorm = 1e-5", "rtol = 0", ["zero tolerance", "1e-5"]),
    "zero norm": (TOLERANCE, "rtol = 1e-4\natol = 1e-6\nnorm = 0", "norm = 0", ["zero tolerance for float32"]),
    "negative tolerance": ("atol = 1e-6", "atol = -1e-6", "atol = ", ["-1e-06 is negative"]),
    "tolerance that accepts zeros": ("rtol = 1e-4", "rtol = 1.5", "rtol = ", ["would accept zeros"]),
    "infinite tolerance": ("atol = 1e-6", "atol = inf", "atol = ", ["inf is out of range"]),
    "no tolerance for a dtype": (
        'peak = { dtype = "float32"', 'peak = { dtype = "float64"', "[tolerance.float32]", ["none for float64", "peak"],
    ),
    "tolerance for no output": (
        "[tolerance.float32]", "[tolerance.float16]\nrtol = 1e-3\natol = 1e-3\nnorm = 1e-3\n[tolerance.float32]",
        "[tolerance.float16]", ["no output has this dtype", "float32"],
    ),
    "wrong axis in a workload": (SMALL, SMALL.replace("rows", "row"), SMALL[:4], ["'row' is no axis", "'rows'"]),
    "axis missing in a workload": (SMALL, "axes = { cols = 512 }", "axes = { cols = 512", ["rows: missing"]),
    "fractional size": (SMALL, SMALL.replace("64", "6.4"), "axes = { rows = 6.4", ["whole number, got 6.4"]),
    "workload outside the domain": (
        SMALL, SMALL.replace("64", "4096"),
        "rows = 4096", ["outside", "1 to 2048"],
    ),
    "two workloads of one name": ('name = "large"', 'name = "small"', None, ["a second workload is named 'small'"]),
    "two workloads of one size": (
        "axes = { rows = 256, cols = 4096 }", "axes = {  rows = 64, cols = 512 }", "axes = {  rows",
        ["same sizes", "'small'"],
    ),
    "bad floor": ('"5 * rows * cols"', '"5 rows"', "operations = ", ["'5 rows' is not arithmetic"]),
    "floor with an unknown name": ('"5 * rows * cols"', '"5 * n"', "operations = ", ["'n' in '5 * n' is no axis"]),
    "floor of zero bytes": ('"4 * (3 * rows * cols + rows)"', '"rows - rows"', "bytes_moved = ", ["at least 1"]),
    "floor without a value": ('"5 * rows * cols"', '"rows / (rows - 64)"', "operations = ", ["no value", "'small'"]),
    "unknown mean": ('entry_point = "run"', 'mean = "harmonic"', "mean = ", ["'harmonic'", "geometric"]),
    "unknown precision": ('entry_point = "run"', 'precision = "fp32"', "precision = ", ["'fp32'", "float32"]),
    "no threads": ('entry_point = "run"', "threads = 0", "threads = ", ["0 is too small"]),
    "unknown limit": ("[baseline]", "[limits]\nbuild = 5\n[baseline]", "build = 5", ["unknown limit", "'build_s'"]),
    "no time": ("[baseline]", "[limits]\nbuild_s = 0\n[baseline]", "build_s = 0", ["is no limit"]),
    "no baseline": ('[baseline]\nlanguage = "cpp"\nfiles = ["baseline.cpp"]', "", None, ["baseline: missing"]),
    "missing program file": (
        '["baseline.cpp"]', '["baselin.cpp"]',
        "files = ", ["no file 'baselin.cpp'", "'baseline.cpp'"],
    ),
    "file outside the folder": ('["baseline.cpp"]', '["../x.cpp"]', "files = ", ["not a plain path inside"]),
    "absolute file": ('["baseline.cpp"]', '["/etc/passwd"]', "files = ", ["not a plain path inside"]),
    "entry point not in the program": (
        'entry_point = "run"', 'entry_point = "go"',
        "files = ", ["no function 'go'", 'extern "C"'],
    ),
    "entry point of another file": (
        'files = ["baseline.cpp"]', 'files = ["baseline.cpp"]\nentry_point = "x.cpp::run"', 'entry_point = "x.cpp',
        ["x.cpp::run", "Write it as baseline.cpp::run"],
    ),
    "guide for another language": ("[baseline]", '[guides]\ncuda = "x.md"\n[baseline]', 'cuda = "x.md"', ["not among"]),
    "missing guide": ("[baseline]", '[guides]\ncpp = "x.md"\n[baseline]', 'cpp = "x.md"', ["no file 'x.md'"]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_task_toml_is_named_with_its_line_and_cure(mistake, folder, edit):
    old, new, place, said = MISTAKES[mistake]
    edit(old, new)
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    message = str(caught.value)
    assert str(folder / "task.toml") in message
    for part in said:
        assert part in message
    if place is not None:
        match = re.match(r".*task\.toml:(\d+): ", message)
        assert match, message
        line = (folder / "task.toml").read_text().splitlines()[int(match[1]) - 1]
        assert line.startswith(place) or place in line, f"{message}\nnames the line {line!r}"


def test_no_timed_workload_is_an_error(folder):
    path = folder / "task.toml"
    path.write_text(re.sub(r"(axes = \{ rows = \d\d.*)", r"\1\ntimed = false", path.read_text()).replace(
        "timed = false\ntimed = false", "timed = false"
    ))  # fmt: skip
    with pytest.raises(TaskError, match="no workload is timed.*Remove timed = false"):
        load_task(folder)


REFERENCE_MISTAKES = {
    "syntax error": ("gate, up = ", "gate, up == = ", r"reference\.py:19: invalid syntax: 'gate, up == = .*Correct"),
    "no reference": ("def reference(", "def refrence(", "no function 'reference'.*inputs, refrence.*Did you mean"),
    "no inputs": ("def inputs(", "def make(", r"no function 'inputs'.*Add `def inputs\(axes, rng\)`"),
    "too few parameters": (
        "axes: dict[str, int], rng: np.random.Generator) -> dict", "axes) -> dict",
        r"py:8: inputs\(axes\) is called with 2",
    ),
    "wrong awkward": (
        "rng: np.random.Generator) -> list", "rng, extra) -> list",
        r"awkward\(axes, rng, extra\).*Write",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFERENCE_MISTAKES)
def test_a_mistake_in_reference_py_is_named_with_its_line_and_cure(mistake, folder, edit):
    old, new, message = REFERENCE_MISTAKES[mistake]
    edit(old, new, "reference.py")
    with pytest.raises(TaskError, match=message):
        load_task(folder)


@pytest.mark.parametrize("file", ["task.toml", "reference.py"])
def test_a_missing_file_is_named(file, folder):
    (folder / file).unlink()
    with pytest.raises(TaskError, match=rf"{file}: no such file"):
        load_task(folder)


@pytest.mark.parametrize("file", ["task.toml", "reference.py", "baseline.cpp"])
def test_text_that_is_not_utf8_is_named(file, folder):
    (folder / file).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match=rf"{file}.*UTF-8"):
        load_task(folder)


def test_a_task_that_does_not_exist_is_answered_with_the_close_name():
    with pytest.raises(TaskError, match="softmx: no such task folder.*Did you mean 'softmax'.*ksearch init softmx"):
        load_task("softmx")


def test_entry_point_in_a_comment_does_not_count(folder, edit):
    edit('extern "C" void run(', '// extern "C" void run(...)\nextern "C" void go(', "baseline.cpp")
    with pytest.raises(TaskError, match="has no function 'run'"):
        load_task(folder)


def test_a_mangled_entry_point_is_refused(folder, edit):
    edit('extern "C" void run(', "void run(", "baseline.cpp")
    with pytest.raises(TaskError, match=r'no extern "C".*the compiler changes the name'):
        load_task(folder)


def test_zero_tolerance_is_fine_for_integer_outputs(folder, edit):
    edit('peak = { dtype = "float32"', 'peak = { dtype = "int32"')
    edit("[floor]", "[tolerance.int32]\nrtol = 0\natol = 0\nnorm = 0\n[floor]")
    assert load_task(folder).spec.tolerance["int32"].atol == 0


def test_axes_and_tensors_keep_the_order_of_the_file(folder):
    spec = load_task(folder).spec
    assert spec.axes == ("rows", "cols")
    assert [t.name for t in spec.inputs] == ["gate", "up"]
    assert [t.name for t in spec.outputs] == ["y", "peak"]


def test_limits_guides_constants_and_strong_programs_are_read(folder, edit):
    (folder / "fast.cpp").write_text('extern "C" void quick() {}')
    (folder / "guide.md").write_text("Be quick.")
    edit(
        "[baseline]",
        '[limits]\nbuild_s = 5\nmemory_bytes = 1000000\n[constants]\nepsilon = 1e-5\n[guides]\ncpp = "guide.md"\n'
        '[strong.fast]\nlanguage = "cpp"\nfiles = ["fast.cpp"]\nentry_point = "fast.cpp::quick"\n[baseline]',
    )
    task = load_task(folder)
    assert (task.spec.limits.build_s, task.spec.limits.memory_bytes) == (5, 1000000)
    assert task.spec.constants == {"epsilon": 1e-5}
    assert task.guides["cpp"].read_text() == "Be quick."
    assert task.strong["fast"].entry_point == "fast.cpp::quick"


def test_the_hash_changes_with_any_file_and_with_nothing_else(folder, tmp_path):
    before = load_task(folder).hash
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "reference.pyc").write_bytes(b"1")
    (folder / ".notes").write_text("hidden")
    moved = folder.rename(tmp_path / "elsewhere")
    assert load_task(moved).hash == before
    path = moved / "reference.py"
    path.write_text(path.read_text() + "\n")
    assert load_task(moved).hash != before


def test_a_task_can_be_named_by_its_file(folder):
    assert load_task(folder / "task.toml").hash == load_task(str(folder)).hash


def test_a_spec_survives_json(folder):
    spec = load_task(folder).spec
    assert TaskSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_loading_runs_nothing(folder: Path):
    (folder / "reference.py").write_text(
        "open('/tmp/ran', 'w')\nraise SystemExit\ndef inputs(axes, rng): ...\ndef reference(inputs, axes): ...\n"
    )
    assert load_task(folder).reference_source.startswith("open(")
    assert not Path("/tmp/ran").exists()


def test_constraints_hold_between_sizes(folder, edit):
    edit('entry_point = "run"', 'constraints = ["cols + 5000 - rows"]\nentry_point = "run"')
    spec = load_task(folder).spec
    assert spec.constraints == ("cols + 5000 - rows",)
    assert spec.allows({"rows": 5001, "cols": 1})
    assert not spec.allows({"rows": 5002, "cols": 1})


def test_a_workload_that_breaks_a_constraint_is_named(folder, edit):
    edit('entry_point = "run"', 'constraints = ["0 - rows"]\nentry_point = "run"')
    with pytest.raises(TaskError, match=r"workloads\[0\].axes: 0 - rows is -\d+.*want 0 or more"):
        load_task(folder)


def test_a_constraint_knows_axes_and_constants_only(folder, edit):
    edit('entry_point = "run"', 'constraints = ["colls - rows"]\nentry_point = "run"')
    with pytest.raises(TaskError, match="constraints: 'colls' in 'colls - rows' is no axis.*Did you mean 'cols'"):
        load_task(folder)
