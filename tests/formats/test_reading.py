"""The field's formats become tasks without torch; each mistake is named by file, line and field."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ksearch.errors import TaskError, TorchMissing
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.stages import unseen
from ksearch.lint import Status, lint_folder
from ksearch.tasks import foreign, init_from, load_task, tasks_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "formats"
NORM = EXAMPLES / "flashinfer_bench/definitions/norm/gated_norm_h96.json"
PAGED = EXAMPLES / "flashinfer_bench/definitions/paged/paged_mean_d32_ps4.json"
PROBLEM = EXAMPLES / "gpu_mode/soft_cap"
SOFTSIGN = EXAMPLES / "kernelbench/level1_softsign_rows.py"
TRACE = Path(__file__).parents[3] / "shared/data/flashinfer-trace"


def _copy(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "formats")
    return tmp_path / "formats"


def test_a_definition_becomes_a_task_with_its_sizes_constants_and_scalars() -> None:
    task = load_task(foreign.place(NORM, "cpu"))
    assert (task.name, task.spec.axes, task.spec.constants) == ("gated_norm_h96", ("rows",), {"hidden": 96})
    assert [(t.name, t.dtype, t.shape) for t in task.spec.inputs] == [
        ("x", "float32", ("rows", "hidden")),
        ("gate", "float32", ("rows", "hidden")),
        ("weight", "float32", ("hidden",)),
        ("epsilon_scale", "float32", ()),
    ]
    assert sorted(w.axes["rows"] for w in task.spec.workloads) == [7, 64, 300]
    definition = json.loads(NORM.read_text())
    assert task.reference_source.startswith(definition["reference"].rstrip())
    assert "float32 arrays that hold values of that type" in task.description


def test_on_a_gpu_types_stay_as_they_are() -> None:
    task = load_task(foreign.place(NORM, "cuda"))
    assert {t.name: t.dtype for t in task.spec.inputs}["x"] == "bfloat16"
    assert task.spec.device == "cuda"
    assert task.spec.languages == ("triton", "cuda", "python")
    assert not task.strong  # the side file's program is for CPUs
    assert task.spec.tolerance["bfloat16"].atol == 4e-3


def test_the_side_file_adds_what_the_format_cannot_say() -> None:
    task = load_task(foreign.place(NORM, "cpu"))
    assert task.spec.tolerance["float32"].atol == 4e-3
    assert task.strong["cpp"].language == "cpp"
    assert task.spec.floor({"rows": 10, "hidden": 96})[1] == 8 * 10 * 96


def test_an_axis_that_follows_from_another_is_a_formula() -> None:
    task = load_task(foreign.place(PAGED, "cpu"))
    assert "len_indptr" not in task.spec.axes
    assert {t.name: t.shape for t in task.spec.inputs}["kv_indptr"] == ("batch_size + 1",)
    assert any("kv_indptr, kv_indices" in note for note in foreign.about(task.folder)["notes"])


def test_the_same_source_gives_the_same_folder_and_a_changed_one_another(tmp_path: Path) -> None:
    place = _copy(tmp_path) / NORM.relative_to(EXAMPLES)
    first = foreign.place(place, "cpu")
    assert foreign.place(place, "cpu") == first
    side = place.with_name("gated_norm_h96.ksearch.toml")
    side.write_text(side.read_text().replace("4e-3", "5e-3"))
    assert foreign.place(place, "cpu") != first
    assert first.is_dir()  # what an older run was begun with


def test_a_data_set_stands_for_its_definitions_and_one_is_named_by_a_colon() -> None:
    place = EXAMPLES / "flashinfer_bench"
    assert [Path(p).stem for p in tasks_of(str(place))] == ["gated_norm_h96", "paged_mean_d32_ps4"]
    assert load_task(f"{place}:gated_norm_h96").name == "gated_norm_h96"
    with pytest.raises(TaskError, match="2 definitions. Name one, as .*:NAME"):
        load_task(place)
    with pytest.raises(TaskError, match="Did you mean 'gated_norm_h96'"):
        load_task(f"{place}:gated_norm_h69")


def test_shapes_in_the_side_file_make_a_kernelbench_file_load_without_running_it() -> None:
    task = load_task(foreign.place(SOFTSIGN, "cpu"))
    assert dict(task.spec.workloads[0].axes) == {"rows": 128, "columns": 500}
    assert task.baseline.language == "cpp"


@pytest.mark.parametrize("place", [PROBLEM, EXAMPLES / "kernelbench/level2_linear_gelu_norm.py"], ids=lambda p: p.name)
def test_where_shapes_need_torch_lint_says_so_and_does_not_fail(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(TorchMissing, match="pip install torch"):
        load_task(place)
    report = lint_folder(place)
    assert report.ok
    assert [row.status for row in report.rows] == [Status.SKIPPED]


def test_a_foreign_task_can_be_written_out_as_an_ordinary_one(tmp_path: Path) -> None:
    task = init_from(str(NORM), tmp_path / "mine", "cpu")
    assert load_task(tmp_path / "mine").hash == task.hash
    assert not foreign.is_foreign(tmp_path / "mine")
    with pytest.raises(TaskError, match="already holds"):
        init_from(str(NORM), tmp_path / "mine", "cpu")


MISTAKES = {
    "a type that is not supported": (
        '"dtype": "bfloat16"',
        '"dtype": "complex64"',
        r"json:\d+: inputs.x.dtype: 'complex64'",
    ),
    "a shape of no axis": (
        '"rows",\n        "hidden"',
        '"rows",\n        "hiden"',
        r"json:\d+: inputs.x.shape: 'hiden' is no axis",
    ),
    "an axis of an unknown kind": ('"type": "var"', '"type": "free"', r"json:\d+: axes.rows.type: 'free' is not known"),
    "a reference without run": ("def run(", "def runs(", r"json:\d+: reference: defines no function run"),
    "a parameter that is no input": ("def run(x,", "def run(xx,", r"json:\d+: reference: run\(\) takes 'xx'"),
    "broken JSON": ('"op_type": "norm",', '"op_type": "norm"', r"json:\d+: not valid JSON"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_definition_is_named_by_line_and_field(name: str, tmp_path: Path) -> None:
    before, after, expected = MISTAKES[name]
    place = _copy(tmp_path) / NORM.relative_to(EXAMPLES)
    text = place.read_text()
    assert before in text
    place.write_text(text.replace(before, after, 1))
    with pytest.raises(TaskError, match=expected):
        load_task(foreign.place(place, "cpu"))


def test_integers_of_unknown_meaning_need_a_range(tmp_path: Path) -> None:
    place = _copy(tmp_path) / PAGED.relative_to(EXAMPLES)
    place.write_text(place.read_text().replace("kv_indices", "lookups"))
    lines = place.parents[2] / "workloads/paged/paged_mean_d32_ps4.jsonl"
    lines.write_text(lines.read_text().replace('"kv_indices"', '"lookups"').replace("num_kv_indices", "num_lookups"))
    with pytest.raises(TaskError, match=r"inputs.lookups: it is not known which values .*\[ranges\] lookups"):
        foreign.place(place, "cpu")
    place.with_name("paged_mean_d32_ps4.ksearch.toml").write_text('[ranges]\nlookups = [0, "num_pages"]\n')
    assert load_task(foreign.place(place, "cpu")).name == "paged_mean_d32_ps4"


def test_a_line_of_the_workloads_is_named(tmp_path: Path) -> None:
    place = _copy(tmp_path) / NORM.relative_to(EXAMPLES)
    lines = place.parents[2] / "workloads/norm/gated_norm_h96.jsonl"
    lines.write_text(lines.read_text().replace('"rows": 64', '"rows": "many"'))
    with pytest.raises(TaskError, match=r"gated_norm_h96.jsonl:2: workload.axes.rows: .* got 'many'"):
        foreign.place(place, "cpu")


YAML = {
    "a missing file": ("../utils.py", "../tools.py", r"task.yml:5: files.2.source: no file"),
    "another language": ('lang: "py"', 'lang: "cu"', r"task.yml:8: lang: 'cu' is not supported"),
    "an argument that is a list": (
        '"rows": 17',
        '"rows": [17]',
        r"task.yml:\d+: tests.1.rows: \[17\] is not supported",
    ),
    "a case without an argument": ('"rows": 17, ', "", r"task.yml:\d+: tests.1: its arguments are not those"),
    "broken YAML": ("tests:", "tests: [", r"task.yml:\d+: not valid YAML"),
}


@pytest.mark.parametrize("name", YAML)
def test_a_mistake_in_a_gpu_mode_problem_is_named_by_line_and_field(name: str, tmp_path: Path) -> None:
    before, after, expected = YAML[name]
    place = _copy(tmp_path) / PROBLEM.relative_to(EXAMPLES)
    text = (place / "task.yml").read_text()
    assert before in text
    (place / "task.yml").write_text(text.replace(before, after))
    with pytest.raises(TaskError, match=expected):
        foreign.place(place, "cpu")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("class Model(", "class Modell(", "no class Model .*Did you mean 'Modell'"),
        ("def forward(", "def forwards(", r"py:\d+: Model has no forward"),
        ("def get_inputs", "def inputs", r"no function get_inputs\(\)"),
        ("rows = 128", "rows = ", r"py:\d+: .*Correct the syntax"),
    ],
)
def test_a_mistake_in_a_kernelbench_file_is_named(before: str, after: str, expected: str, tmp_path: Path) -> None:
    place = _copy(tmp_path) / SOFTSIGN.relative_to(EXAMPLES)
    place.write_text(place.read_text().replace(before, after))
    with pytest.raises(TaskError, match=expected):
        foreign.place(place, "cpu")


def test_an_unknown_key_in_a_side_file_is_named_by_line(tmp_path: Path) -> None:
    place = _copy(tmp_path) / SOFTSIGN.relative_to(EXAMPLES)
    side = place.with_name("level1_softsign_rows.ksearch.toml")
    side.write_text("tolerances = 1\n" + side.read_text())
    with pytest.raises(TaskError, match=r"ksearch.toml:1: tolerances: unknown key.*Did you mean 'tolerance'"):
        foreign.place(place, "cpu")


@pytest.mark.skipif(not TRACE.is_dir(), reason="the public data set is not here")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_definition_of_the_public_data_set_loads(device: str) -> None:
    places = tasks_of(str(TRACE))
    assert len(places) > 150
    for place in places:
        task = load_task(foreign.place(place, device))
        assert all(w.axes.keys() == set(task.spec.axes) for w in task.spec.workloads)


def test_unseen_sizes_keep_to_the_constraints(tmp_path: Path) -> None:
    place = _copy(tmp_path) / PAGED.relative_to(EXAMPLES)
    side = place.with_name("paged_mean_d32_ps4.ksearch.toml")
    side.write_text('constraints = ["num_pages - num_kv_indices"]\n')
    spec = load_task(foreign.place(place, "cpu")).spec
    size = {t.name: t for t in (*spec.inputs, *spec.outputs)}
    bench = SimpleNamespace(spec=spec, set_bytes=lambda a: sum(t.size_bytes(spec.names(a)) for t in size.values()))
    found = unseen(cast("Bench", bench), 8, random.Random(1))
    assert found
    assert all(w.axes["num_pages"] >= w.axes["num_kv_indices"] for w in found)
