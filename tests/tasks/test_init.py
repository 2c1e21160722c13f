from __future__ import annotations

import pytest

from ksearch.errors import TaskError
from ksearch.tasks import bundled_tasks, init_task, load_task


@pytest.mark.parametrize("language", ["cpp", "python"])
def test_a_new_task_loads_as_it_stands(tmp_path, language):
    task = init_task(tmp_path / "My Kernel!", language=language)
    assert task.name == "my_kernel"
    assert task.spec.languages == (language,)
    assert task.baseline.language == language
    assert len(task.spec.workloads) > len([w for w in task.spec.workloads if w.timed]) >= 3
    assert load_task(tmp_path / "My Kernel!") == task


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "reference.py").write_text("mine")
    with pytest.raises(TaskError, match=r"already holds reference\.py; nothing was written"):
        init_task(tmp_path, "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["reference.py"]
    assert (tmp_path / "reference.py").read_text() == "mine"


def test_a_second_init_is_refused(tmp_path):
    init_task(tmp_path / "a")
    with pytest.raises(TaskError, match=r"already holds task\.toml, reference\.py, baseline\.cpp"):
        init_task(tmp_path / "a")


def test_names_and_languages_are_checked_before_anything_is_written(tmp_path):
    for name, language, message in [("Bad Name", "cpp", "cannot name a task"), ("x", "pyton", "Did you mean 'python'")]:
        with pytest.raises(TaskError, match=message):
            init_task(tmp_path / "new", name, language)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TaskError, match="cannot be written"):
        init_task(tmp_path / "file", "x")


def test_tasks_are_bundled_for_cpus_and_gpus():
    on_cpus = {"gemm", "gqa_paged_decode", "rmsnorm_residual", "softmax", "trimul"}
    on_gpus = {"gqa_paged_decode_gpu", "mla_paged_decode", "mla_paged_prefill", "moe_fp8_block_scale", "trimul_gpu"}
    assert on_cpus | on_gpus <= set(bundled_tasks())
    assert list(bundled_tasks()) == sorted(bundled_tasks())
